// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/judge"
)

// harm is what people and tools do to a ledger that nothing protects.
type harm struct {
	how string
	do  func(ctx context.Context, ledger *quotav1.QuotaLedger) error
}

func patched(how, patch string) harm {
	return harm{how: how, do: func(ctx context.Context, ledger *quotav1.QuotaLedger) error {
		return api.Patch(ctx, ledger, client.RawPatch(types.MergePatchType, []byte(patch)))
	}}
}

func harmsToLedgers() []harm {
	var copied *quotav1.QuotaLedger
	return []harm{
		patched("used is edited down", `{"entries":{"used":{"pods":"0"}}}`),
		patched("its reservations are edited away", `{"entries":{"reservations":[]}}`),
		patched("all of it is edited away", `{"entries":null}`),
		patched("its owner is edited away", `{"metadata":{"ownerReferences":null}}`),
		{how: "an older one is put back", do: func(ctx context.Context, ledger *quotav1.QuotaLedger) error {
			if copied == nil || copied.Name != ledger.Name {
				copied = &quotav1.QuotaLedger{}
				return api.Get(ctx, client.ObjectKeyFromObject(ledger), copied)
			}
			older, err := json.Marshal(map[string]any{"entries": copied.Entries})
			Expect(err).NotTo(HaveOccurred())
			return api.Patch(ctx, ledger, client.RawPatch(types.MergePatchType, older))
		}},
		{how: "it is deleted", do: func(ctx context.Context, ledger *quotav1.QuotaLedger) error {
			return api.Delete(ctx, ledger)
		}},
		{how: "it is deleted, and made again by hand", do: func(ctx context.Context, ledger *quotav1.QuotaLedger) error {
			forged := ledger.DeepCopy()
			forged.ResourceVersion, forged.UID = "", ""
			if err := api.Delete(ctx, ledger); err != nil {
				return err
			}
			return api.Create(ctx, forged)
		}},
	}
}

var _ = Describe("A ledger that nothing protects", longest, func() {
	for _, harm := range harmsToLedgers() {
		It("is rebuilt with all that is in flight at the limit, when "+harm.how, func(ctx SpecContext) {
			const limit, clients = 6, 12
			truth, err := judge.Start(ctx, cluster.EtcdURL())
			Expect(err).NotTo(HaveOccurred())
			defer func() { Expect(truth.Stop()).To(Succeed()) }()
			team := newTeam()
			quota := enforce(ctx, team.quota().Hard("pods", "6").Hard("services.loadbalancers", "0"))
			namespaces := []string{team.namespace(ctx), team.namespace(ctx), team.namespace(ctx)}
			// The API server loads what it is to ask about a moment after that was written.
			probe := builders.Service(namespaces[0], "probe").Type(corev1.ServiceTypeLoadBalancer, 80).Obj()
			Eventually(ctx, func(ctx context.Context) error { return api.Create(ctx, probe, client.DryRunAll) }).
				Should(BeRefused(exceeded(quota.Name, "services.loadbalancers", "1", "0", "0")))

			loading, stop := context.WithCancel(ctx)
			var group sync.WaitGroup
			defer group.Wait()
			defer stop()
			var admitted, unknown atomic.Int32
			for i := range clients {
				group.Go(func() {
					defer GinkgoRecover()
					for loading.Err() == nil {
						pod := builders.Pod(namespaces[i%len(namespaces)], fmt.Sprintf("client%d", i)).Generated().Obj()
						err := api.Create(ctx, pod)
						switch {
						case err == nil:
							admitted.Add(1)
							mustDelete(ctx, pod)
						case strings.Contains(err.Error(), "status unknown for quota: "+quota.Name):
							unknown.Add(1)
						default:
							Expect(err).To(BeRefused(exceeded(quota.Name, "pods", "1", "6", "6")))
						}
					}
				})
			}
			for range 8 {
				before := admitted.Load()
				ledger := &quotav1.QuotaLedger{}
				Expect(api.Get(ctx, client.ObjectKeyFromObject(quota), ledger)).To(Succeed())
				// What the operator does at the same moment may come first.
				err := harm.do(ctx, ledger)
				Expect(err).To(Or(Not(HaveOccurred()), Satisfy(apierrors.IsNotFound), Satisfy(apierrors.IsAlreadyExists)))
				Eventually(ctx, admitted.Load).WithTimeout(reservationTTL/4).Should(BeNumerically(">", before+clients), "it heals, and by itself")
			}
			stop()
			group.Wait()

			report, err := truth.Report(ctx)
			Expect(err).NotTo(HaveOccurred())
			judged := report.Quotas[quota.Name]
			Expect(judged.Violations).To(BeEmpty())
			AddReportEntry("admitted, at most at once, status unknown",
				fmt.Sprintf("%d, %s of %d, %d", admitted.Load(), amounts(judged.Peak), limit, unknown.Load()))
			eventuallyUses(ctx, quota, "pods=0,services.loadbalancers=0")
			for i := range limit {
				mustCreate(ctx, builders.Pod(namespaces[0], fmt.Sprintf("p%d", i)).Obj())
			}
			Expect(api.Create(ctx, builders.Pod(namespaces[1], "late").Obj())).To(BeRefused(exceeded(quota.Name, "pods", "1", "6", "6")))
		})
	}

	It("is rebuilt when nobody knows what is in flight, once all of that has arrived", func(ctx SpecContext) {
		team, other := newTeam(), newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "2"))
		namespace, elsewhere := team.namespace(ctx), other.namespace(ctx)
		mustCreate(ctx, builders.Pod(namespace, "p1").Obj())
		eventuallyUses(ctx, quota, "pods=1")

		By("holding an admitted pod on its way to storage")
		way := startRecorder(ctx, team)
		way.waitUntilAsked(ctx, namespace)
		way.hold()
		before := admittedByOperator(ctx)
		arrived := make(chan error, 1)
		go func() { arrived <- api.Create(ctx, builders.Pod(namespace, "late").Obj()) }()
		way.waitUntilHolding(ctx)
		// The API server asks both webhooks at once, and the operator settles what it saw in its own time.
		Eventually(ctx, func(ctx context.Context) []string { return reservations(ctx, quota) }).
			Should(ConsistOf(ContainSubstring(" " + namespace + " late ")))
		Eventually(ctx, admittedByOperator).Should(BeNumerically(">", before), "the answer comes after the reservation")

		By("deleting the ledger while no operator runs")
		away(running.Kill)
		Expect(api.Delete(ctx, &quotav1.QuotaLedger{ObjectMeta: metav1.ObjectMeta{Name: quota.Name}})).To(Succeed())
		sealed := time.Now()
		start(ctx)
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			g.Expect(api.Get(ctx, client.ObjectKeyFromObject(quota), quota)).To(Succeed())
			g.Expect(conditionOf(quota, quotav1.ConditionReady)).To(HavePrefix("False LedgerLost: the ledger was deleted or edited at about "))
		}).Should(Succeed())
		Expect(api.Create(ctx, builders.Pod(namespace, "p2").Obj(), client.DryRunAll)).
			To(MatchError(ContainSubstring("status unknown for quota: " + quota.Name)))

		By("having what was admitted before arrive")
		way.release() // soon, because the API server waits for no webhook longer than 30 s
		Expect(<-arrived).To(Succeed())

		By("enforcing a new quota at once")
		enforce(ctx, other.quota().Hard("pods", "1"))
		mustCreate(ctx, builders.Pod(elsewhere, "p1").Obj())
		Eventually(ctx, func(ctx context.Context) error {
			return api.Create(ctx, builders.Pod(namespace, "p2").Obj())
		}).WithTimeout(reservationTTL + deadline).WithPolling(10 * poll).Should(BeRefused(exceeded(quota.Name, "pods", "1", "2", "2")))
		Expect(time.Since(sealed)).To(BeNumerically(">=", reservationTTL))
		Expect(podsOf(ctx, []string{namespace})).To(HaveLen(2))
		eventuallyUses(ctx, quota, "pods=2")
	})
})

// admittedByOperator returns how often the API server has heard from the operator that it may create
// what a quota limits.
func admittedByOperator(ctx context.Context) float64 {
	GinkgoHelper()
	total, is := 0.0, scrapeAPIServer(ctx)
	for _, webhook := range generated(configuration(ctx))[1:] {
		total += is.sum("apiserver_admission_webhook_request_total", "name", webhook.Name, "operation", "CREATE", "rejected", "false")
	}
	return total
}

var _ = Describe("The ledger that a quota's status names", func() {
	It("is the one that is open, whatever somebody makes of the status", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "2"))
		namespace := team.namespace(ctx)
		mustCreate(ctx, builders.Pod(namespace, "p1").Obj())
		eventuallyUses(ctx, quota, "pods=1")
		named := func(ctx context.Context) (types.UID, error) {
			current := &quotav1.ClusterResourceQuota{}
			err := api.Get(ctx, client.ObjectKeyFromObject(quota), current)
			return current.Status.Ledger, err
		}
		stored := func(ctx context.Context) (types.UID, error) {
			current := &quotav1.QuotaLedger{}
			err := api.Get(ctx, client.ObjectKeyFromObject(quota), current)
			return current.UID, client.IgnoreNotFound(err)
		}
		first, err := stored(ctx)
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, named).Should(Equal(first))

		for _, edit := range []string{`"another"`, `null`, `"` + string(quota.UID) + `"`} {
			By("editing it to " + edit)
			patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"ledger":`+edit+`}}`))
			Expect(api.Status().Patch(ctx, quota.DeepCopy(), patch)).To(Succeed())
			Eventually(ctx, named).WithTimeout(5 * time.Second).Should(Equal(first))
		}

		By("deleting the ledger: what is in flight by the one that is named again is known")
		Expect(api.Delete(ctx, &quotav1.QuotaLedger{ObjectMeta: metav1.ObjectMeta{Name: quota.Name}})).To(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return api.Create(ctx, builders.Pod(namespace, "p2").Obj()) }).
			WithTimeout(reservationTTL / 4).Should(Succeed())
		second, err := stored(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(second).NotTo(Or(BeEmpty(), Equal(first)))
		Eventually(ctx, named).Should(Equal(second))
		Consistently(ctx, named).Should(Equal(second))
		Expect(api.Create(ctx, builders.Pod(namespace, "p3").Obj())).To(BeRefused(exceeded(quota.Name, "pods", "1", "2", "2")))
	})
})
