// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledgerstore"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// escrowed returns how many pods the replicas hold in escrow.
func escrowed(ctx context.Context, quota client.Object) int64 {
	GinkgoHelper()
	held := int64(0)
	state, undecoded := ledgerstore.Decode(2, reservations(ctx, quota))
	Expect(undecoded).To(BeEmpty())
	for _, escrow := range state.Escrows {
		held += escrow.Amounts.Pods().Value()
	}
	return held
}

// writes returns how often the quota's ledger was written.
func writes(ctx context.Context, quota client.Object) int64 {
	GinkgoHelper()
	ledger := &quotav1.QuotaLedger{}
	Expect(api.Get(ctx, client.ObjectKeyFromObject(quota), ledger)).To(Succeed())
	return ledger.Generation
}

var _ = Describe("A replica that is asked often, far from the limit", longest, Ordered, func() {
	burst := func(ctx context.Context, namespace, prefix string, pods int) {
		GinkgoHelper()
		for i := range pods {
			mustCreate(ctx, builders.Pod(namespace, fmt.Sprintf("%s%d", prefix, i)).Obj())
		}
	}
	// burstIntoEscrow creates so many pods, and more as long as nothing is in escrow, because the
	// machine paused and the replica was not asked often. It returns how many.
	burstIntoEscrow := func(ctx context.Context, quota client.Object, namespace string, pods int) int {
		GinkgoHelper()
		burst(ctx, namespace, "p", pods)
		created := pods
		for ; escrowed(ctx, quota) == 0; created++ {
			Expect(created).To(BeNumerically("<", 2*pods), "nothing is in escrow")
			burst(ctx, namespace, fmt.Sprintf("p%d-", created), 1)
		}
		return created
	}

	It("grants from an escrow, and gives it back", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "1000"))
		namespace := team.namespace(ctx)
		before := writes(ctx, quota)
		pods := burstIntoEscrow(ctx, quota, namespace, 60)
		after := writes(ctx, quota)
		AddReportEntry("writes of the ledger", fmt.Sprintf("%d for %d pods", after-before, pods))
		Expect(after - before).To(BeNumerically("<", pods/2))
		eventuallyUses(ctx, quota, fmt.Sprintf("pods=%d", pods))
		Eventually(ctx, func(ctx context.Context) []string { return reservations(ctx, quota) }).Should(BeEmpty())
		settled := writes(ctx, quota)
		Consistently(ctx, func(ctx context.Context) int64 { return writes(ctx, quota) }).WithTimeout(2 * time.Second).Should(Equal(settled))
	})

	It("has a lowered limit bind from when the edit is answered", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "1000"))
		namespace := team.namespace(ctx)
		full := fmt.Sprint(burstIntoEscrow(ctx, quota, namespace, 20) + 1)
		Expect(api.Patch(ctx, quota, suite.Merge(`{"spec":{"quota":{"hard":{"pods":"`+full+`"}}}}`))).To(Succeed())
		burst(ctx, namespace, "last", 1)
		Expect(api.Create(ctx, builders.Pod(namespace, "late").Obj())).To(BeRefused(exceeded(quota.Name, "pods", "1", full, full)))
	})

	It("gives it back when it stops", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "1000"))
		namespace := team.namespace(ctx)
		pods := burstIntoEscrow(ctx, quota, namespace, 20)
		away(running.Stop)
		Expect(escrowed(ctx, quota)).To(BeZero())
		start(ctx)
		eventuallyUses(ctx, quota, fmt.Sprintf("pods=%d", pods))
	})

	It("has it charged when it dies, until nothing of it can come any more", func(ctx SpecContext) {
		const limit = 100
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", fmt.Sprint(limit)))
		namespace := team.namespace(ctx)
		admitted, refused := burstIntoEscrow(ctx, quota, namespace, 20), ""
		away(running.Kill)
		held := escrowed(ctx, quota)
		Expect(held).To(And(BeNumerically(">", 0), BeNumerically("<=", limit/4)))
		start(ctx)

		By("taking all that is free without it")
		Eventually(ctx, func(ctx context.Context) error {
			err := api.Create(ctx, builders.Pod(namespace, "more").Generated().Obj())
			switch {
			case err == nil:
				admitted++
			case !strings.Contains(err.Error(), "status unknown"):
				refused = err.Error()
			}
			return err
		}).WithPolling(time.Millisecond).WithTimeout(time.Minute).Should(MatchError(ContainSubstring("exceeded quota: " + quota.Name)))
		AddReportEntry("held for the dead", fmt.Sprintf("%d of %d, %d admitted: %s", held, limit, admitted, refused))
		Expect(admitted).To(BeNumerically(">=", limit-int(held)))
		Expect(admitted).To(BeNumerically("<", limit))

		By("waiting until its escrow is over")
		Eventually(ctx, func(ctx context.Context) int64 { return escrowed(ctx, quota) }).
			WithTimeout(reservationTTL + deadline).WithPolling(10 * poll).Should(BeZero())
		burst(ctx, namespace, "last", limit-admitted)
		Expect(api.Create(ctx, builders.Pod(namespace, "late").Obj())).
			To(BeRefused(exceeded(quota.Name, "pods", "1", fmt.Sprint(limit), fmt.Sprint(limit))))
	})
})
