// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
)

var _ = Describe("An operator that is killed", longest, func() {
	It("in the middle of many creations leaves nothing admitted beyond the limit, and nothing stuck", func(ctx SpecContext) {
		const limit, clients = 20, 40
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "20"))
		namespaces := []string{team.namespace(ctx), team.namespace(ctx), team.namespace(ctx), team.namespace(ctx)}

		var admitted, lost atomic.Int32
		var group sync.WaitGroup
		for i := range clients {
			group.Go(func() {
				defer GinkgoRecover()
				// Like a controller, each tries until it is told yes or no.
				Eventually(ctx, func(ctx context.Context) error {
					err := api.Create(ctx, builders.Pod(namespaces[i%len(namespaces)], fmt.Sprintf("p%d", i)).Obj())
					switch {
					case err == nil, apierrors.IsAlreadyExists(err):
						admitted.Add(1)
						return nil
					case apierrors.IsForbidden(err):
						return nil
					}
					lost.Add(1)
					return err
				}).Should(Succeed())
			})
		}
		Eventually(admitted.Load).Should(BeNumerically(">=", limit/4))
		restart(ctx)
		back := time.Now()
		group.Wait()
		AddReportEntry("requests that failed while it was away", lost.Load())
		Expect(len(podsOf(ctx, namespaces))).To(BeNumerically("<=", limit))

		By("using what is left, once what was reserved in vain has expired")
		next := clients
		Eventually(ctx, func(ctx SpecContext) int {
			for api.Create(ctx, builders.Pod(namespaces[0], fmt.Sprintf("p%d", next)).Obj()) == nil {
				next++
			}
			return len(podsOf(ctx, namespaces))
		}).WithTimeout(reservationTTL + deadline).WithPolling(10 * poll).Should(Equal(limit))
		usesWithin(ctx, reservationTTL+deadline, quota, "pods=20")
		AddReportEntry("settled after", time.Since(back).Round(time.Second))
		Expect(api.Create(ctx, builders.Pod(namespaces[1], "late").Obj())).To(BeRefused(exceeded(quota.Name, "pods", "1", "20", "20")))
	})

	It("has missed nothing that happened meanwhile", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "3"))
		kept, gone := team.namespace(ctx), team.namespace(ctx)
		mustCreate(ctx, builders.Pod(kept, "p1").Obj())
		mustCreate(ctx, builders.Pod(gone, "p1").Obj())
		doomed := mustCreate(ctx, builders.Pod(kept, "p2").Obj())
		eventuallyUses(ctx, quota, "pods=3")
		// The status tells a reservation from what is used before the ledger is written.
		Eventually(ctx, func(g Gomega, ctx SpecContext) {
			ledger := &quotav1.QuotaLedger{}
			g.Expect(api.Get(ctx, client.ObjectKeyFromObject(quota), ledger)).To(Succeed())
			g.Expect(ledger.Entries.Reservations).To(BeEmpty())
		}).Should(Succeed())

		away(running.Kill)
		By("deleting, relabelling and creating while it is away")
		mustDelete(ctx, doomed)
		relabel(ctx, mustGetNamespace(ctx, gone), nil)
		Expect(api.Create(ctx, builders.Pod(kept, "p3").Obj())).To(MatchError(ContainSubstring("failed calling webhook")))
		newcomer := mustCreate(ctx, builders.Namespace(team.nextName()).Obj())
		relabel(ctx, newcomer, map[string]string{teamLabel: team.name})

		start(ctx)
		eventuallyUses(ctx, quota, "pods=1")
		Eventually(ctx, func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(api.Create(ctx, builders.Pod(newcomer.Name, "p1").Obj()))
		}).Should(Succeed())
		mustCreate(ctx, builders.Pod(newcomer.Name, "p2").Obj())
		Expect(api.Create(ctx, builders.Pod(kept, "p3").Obj())).To(BeRefused(exceeded(quota.Name, "pods", "1", "3", "3")))
	})
})

var _ = Describe("An operator that is told to stop", func() {
	It("in the middle of many creations answers them, and leaves nothing reserved", func(ctx SpecContext) {
		const clients = 60
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "4000"))
		namespaces := []string{team.namespace(ctx), team.namespace(ctx), team.namespace(ctx), team.namespace(ctx)}

		var admitted atomic.Int32
		var group sync.WaitGroup
		for i := range clients {
			group.Go(func() {
				// Each goes on until nobody answers any more.
				for n := 0; api.Create(ctx, builders.Pod(namespaces[i%len(namespaces)], fmt.Sprintf("p%d-%d", i, n)).Obj()) == nil; n++ {
					admitted.Add(1)
				}
			})
		}
		Eventually(admitted.Load).Should(BeNumerically(">=", 2*clients))
		away(running.Stop)
		group.Wait()
		start(ctx)
		usesWithin(ctx, reservationTTL/4, quota, fmt.Sprintf("pods=%d", admitted.Load()))
		Expect(podsOf(ctx, namespaces)).To(HaveLen(int(admitted.Load())))
	})
})

var _ = Describe("An operator in a cluster that has no quota", func() {
	It("has the first one validated", func(ctx SpecContext) {
		away(running.Kill)
		configurations := &admissionregistrationv1.ValidatingWebhookConfigurationList{}
		Expect(api.List(ctx, configurations)).To(Succeed())
		for i := range configurations.Items {
			mustDelete(ctx, &configurations.Items[i])
		}
		quotas := &quotav1.ClusterResourceQuotaList{}
		Expect(api.List(ctx, quotas)).To(Succeed())
		Expect(quotas.Items).To(BeEmpty(), "each spec deletes its own")

		start(ctx)
		Expect(tryInvalidQuota(ctx)).To(MatchError(ContainSubstring("must be an integer")))
	})
})

// away ends the operator, by its Kill or Stop. If no other has taken its place by the end of
// the spec, one does then.
func away(end func() error) {
	GinkgoHelper()
	DeferCleanup(func(ctx SpecContext) {
		select {
		case <-running.Done():
			start(ctx)
		default:
		}
	})
	Expect(end()).To(Succeed())
}

// restart kills the operator and starts it again.
func restart(ctx context.Context) {
	GinkgoHelper()
	Expect(running.Kill()).To(Succeed())
	start(ctx)
}

// start puts another operator in the place of the one that ended.
func start(ctx context.Context) {
	GinkgoHelper()
	startWith(ctx, settings)
}

// startWith is start with these options. It returns once the API server knows the operator's
// certificate: the operator is ready when it has read that in the configuration, and the API
// server loads the configuration in its own time.
func startWith(ctx context.Context, options harness.OperatorOptions) {
	GinkgoHelper()
	started, err := cluster.StartOperator(ctx, options)
	Expect(err).NotTo(HaveOccurred())
	running = started // if none started, the one before can still be ended once more
	Eventually(ctx, tryInvalidQuota).Should(MatchError(ContainSubstring("must be an integer")))
}
