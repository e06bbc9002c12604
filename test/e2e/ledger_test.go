// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
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
	// note is told of the first ledger; nil if that is of no concern.
	note func(ledger *quotav1.QuotaLedger)
	do   func(ctx context.Context, ledger *quotav1.QuotaLedger) error
}

// edited fails if the edit changes nothing: a ledger settles in its own time, so that it may have no use yet.
func edited(how string, edit func(ledger *quotav1.QuotaLedger)) harm {
	return harm{how: how, do: func(ctx context.Context, ledger *quotav1.QuotaLedger) error {
		before := ledger.ResourceVersion
		edit(ledger)
		err := api.Update(ctx, ledger)
		if err == nil && ledger.ResourceVersion == before {
			err = errors.New("the edit changes nothing")
		}
		return err
	}}
}

func harmsToLedgers() []harm {
	copied := map[string]*quotav1.QuotaLedger{}
	older := edited("an older one is put back", func(ledger *quotav1.QuotaLedger) { ledger.Entries = copied[ledger.Name].Entries })
	older.note = func(ledger *quotav1.QuotaLedger) { copied[ledger.Name] = ledger }
	return []harm{
		edited("used is edited down", func(ledger *quotav1.QuotaLedger) {
			ledger.Entries.Used = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
		}),
		edited("its reservations are edited away", func(ledger *quotav1.QuotaLedger) { ledger.Entries.Reservations = nil }),
		edited("all of it is edited away", func(ledger *quotav1.QuotaLedger) { ledger.Entries = quotav1.QuotaLedgerEntries{} }),
		edited("its owner is edited away", func(ledger *quotav1.QuotaLedger) { ledger.OwnerReferences = nil }),
		older,
		{how: "it is deleted", do: func(ctx context.Context, ledger *quotav1.QuotaLedger) error {
			return api.Delete(ctx, ledger)
		}},
		{how: "it is deleted, and made again by hand", do: func(ctx context.Context, ledger *quotav1.QuotaLedger) error {
			forged := ledger.DeepCopy()
			forged.ResourceVersion, forged.UID = "", ""
			if err := api.Delete(ctx, ledger); err != nil {
				return err
			}
			// The operator may have made another one already.
			return client.IgnoreAlreadyExists(api.Create(ctx, forged))
		}},
	}
}

// victim is a quota to whose ledger something happens.
type victim struct {
	harm
	quota     *quotav1.ClusterResourceQuota
	namespace string
	// back is when the quota was seen to be ready again.
	back time.Time
}

func (v *victim) ledger(ctx context.Context) *quotav1.QuotaLedger {
	GinkgoHelper()
	ledger := &quotav1.QuotaLedger{}
	Expect(api.Get(ctx, client.ObjectKeyFromObject(v.quota), ledger)).To(Succeed())
	return ledger
}

// ready returns the condition Ready.
func (v *victim) ready(ctx context.Context) (string, error) {
	err := api.Get(ctx, client.ObjectKeyFromObject(v.quota), v.quota)
	return conditionOf(v.quota, quotav1.ConditionReady), err
}

// hammer creates pods, and deletes those that it may create, until ctx ends.
func (v *victim) hammer(ctx, until context.Context) {
	for until.Err() == nil {
		if pod := builders.Pod(v.namespace, "client").Generated().Obj(); api.Create(ctx, pod) == nil {
			mustDelete(ctx, pod)
		}
	}
}

var untilWhen = regexp.MustCompile(`are refused until (\S+): by then`)

var _ = Describe("A ledger that nothing protects", longest, func() {
	It("grants nothing for the life of a reservation, whatever somebody does to it, and is exact again then", func(ctx SpecContext) {
		truth, err := judge.Start(ctx, cluster.EtcdURL())
		Expect(err).NotTo(HaveOccurred())
		defer func() { Expect(truth.Stop()).To(Succeed()) }()
		var victims []*victim
		for _, harm := range harmsToLedgers() {
			team := newTeam()
			victims = append(victims, &victim{harm: harm, namespace: team.namespace(ctx), quota: createQuota(ctx, team.quota().Hard("pods", "2").Obj())})
		}
		for _, one := range victims {
			waitUntilEnforced(ctx, one.quota)
			if one.note != nil {
				one.note(one.ledger(ctx))
			}
			mustCreate(ctx, builders.Pod(one.namespace, "p1").Obj())
			eventuallyUses(ctx, one.quota, "pods=1")
		}

		By("holding an admitted pod on its way to storage")
		late := victims[len(victims)-1]
		way := startRecorder(ctx, &team{name: late.quota.Name})
		way.waitUntilAsked(ctx, late.namespace)
		way.hold()
		before := admittedByOperator(ctx)
		arrived := make(chan error, 1)
		go func() { arrived <- api.Create(ctx, builders.Pod(late.namespace, "late").Obj()) }()
		way.waitUntilHolding(ctx)
		// The API server asks both webhooks at once, and the operator settles what it saw in its own time.
		Eventually(ctx, func(ctx context.Context) []string { return reservations(ctx, late.quota) }).
			Should(ConsistOf(ContainSubstring(" " + late.namespace + " late ")))
		Eventually(ctx, admittedByOperator).Should(BeNumerically(">", before), "the answer comes after the reservation")

		loading, stop := context.WithCancel(ctx)
		var clients sync.WaitGroup
		defer clients.Wait()
		defer stop()
		for _, one := range victims[:len(victims)-1] {
			for range 2 {
				clients.Go(func() {
					defer GinkgoRecover()
					one.hammer(ctx, loading)
				})
			}
		}

		By("harming all ledgers, and killing the operator soon after")
		harmed := time.Now()
		for _, one := range victims {
			Eventually(ctx, func(ctx context.Context) error { return one.do(ctx, one.ledger(ctx)) }).Should(Succeed(), one.how)
		}
		for _, one := range victims {
			Eventually(ctx, one.ready).Should(HavePrefix("False LedgerLost: "), one.how)
			message := meta.FindStatusCondition(one.quota.Status.Conditions, quotav1.ConditionReady).Message
			Expect(message).To(MatchRegexp(untilWhen.String()))
			until, err := time.Parse(time.RFC3339, untilWhen.FindStringSubmatch(message)[1])
			Expect(err).NotTo(HaveOccurred())
			Expect(until).To(BeTemporally(">=", harmed.Add(reservationTTL)), one.how)
			Expect(until).To(BeTemporally("<=", time.Now().Add(reservationTTL+time.Second)), one.how)
			Eventually(ctx, eventsOn("ClusterResourceQuota", "", one.quota.Name)).
				Should(ContainElement("LedgerLost  "+message), one.how)
		}
		restart(ctx)
		restarted := time.Now() // a new leader begins to wait

		By("having what was admitted before arrive")
		way.release() // soon, because the API server waits for no webhook longer than 30 s
		Expect(<-arrived).To(Succeed())

		By("enforcing a new quota at once")
		other := newTeam()
		enforce(ctx, other.quota().Hard("pods", "1"))
		mustCreate(ctx, builders.Pod(other.namespace(ctx), "p1").Obj())
		Expect(api.Create(ctx, builders.Pod(late.namespace, "p2").Obj(), client.DryRunAll)).
			To(MatchError(ContainSubstring("status unknown for quota: " + late.quota.Name)))

		By("being ready again once all is counted")
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			for _, one := range victims {
				ready, err := one.ready(ctx)
				g.Expect(err).NotTo(HaveOccurred())
				if one.back.IsZero() && strings.HasPrefix(ready, "True") {
					one.back = time.Now()
				}
			}
			for _, one := range victims {
				g.Expect(one.back).NotTo(BeZero(), one.how)
			}
		}).WithTimeout(time.Until(restarted.Add(reservationTTL + deadline))).Should(Succeed())
		for _, one := range victims {
			Expect(one.back).To(BeTemporally(">=", harmed.Add(reservationTTL)), one.how)
			AddReportEntry(one.how+": ready again after", one.back.Sub(harmed).Round(100*time.Millisecond))
		}
		stop()
		clients.Wait()
		report, err := truth.Report(ctx)
		Expect(err).NotTo(HaveOccurred())
		for _, one := range victims {
			Expect(report.Quotas[one.quota.Name].Violations).To(BeEmpty(), one.how)
			if one != late {
				eventuallyUses(ctx, one.quota, "pods=1")
				mustCreate(ctx, builders.Pod(one.namespace, "p2").Obj())
			}
			Expect(api.Create(ctx, builders.Pod(one.namespace, "p3").Obj())).To(BeRefused(exceeded(one.quota.Name, "pods", "1", "2", "2")))
			eventuallyUses(ctx, one.quota, "pods=2")
		}
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

		By("deleting the ledger: another one has been open before, so it is sealed")
		Expect(api.Delete(ctx, &quotav1.QuotaLedger{ObjectMeta: metav1.ObjectMeta{Name: quota.Name}})).To(Succeed())
		Eventually(ctx, func(ctx context.Context) (string, error) {
			err := api.Get(ctx, client.ObjectKeyFromObject(quota), quota)
			return conditionOf(quota, quotav1.ConditionReady), err
		}).Should(HavePrefix("False LedgerLost: "))
		Expect(stored(ctx)).NotTo(Or(BeEmpty(), Equal(first)))
		Expect(named(ctx)).To(Equal(first))
		Expect(api.Create(ctx, builders.Pod(namespace, "p2").Obj())).To(MatchError(ContainSubstring("status unknown for quota: " + quota.Name)))
	})
})
