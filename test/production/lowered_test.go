// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package production

import (
	"context"
	"fmt"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/faults/proxy"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// Which replica the API server asks is by chance, so many calls are made at once.
var _ = Describe("A limit that is lowered", Ordered, ContinueOnFailure, func() {
	var leader, other *proxy.Proxy
	BeforeAll(func(ctx SpecContext) {
		leader, other = between(), between()
		fresh(ctx, []string{"--status-interval=100ms"}, leader.Config(), other.Config())
	})
	hold := func(held bool) {
		leader.HoldWatches(held)
		other.HoldWatches(held)
	}

	DescribeTable("binds from the moment that the edit is answered", func(ctx SpecContext, held bool) {
		const rounds = 30
		name := fmt.Sprint("lowered-", held)
		limited(ctx, builders.Quota(name).Hard("pods", "6"))
		DeferCleanup(hold, false)
		for _, pod := range []string{"p1", "p2", "p3"} {
			suite.Create(ctx, admin, builders.Pod(name, pod).Obj())
		}
		turns := 0
		for round := range rounds {
			Eventually(ctx, createAtOnce).WithArguments(name, client.DryRunAll).Should(HaveEach(Succeed()), "seen by both")
			before := restingWrites(ctx, other)
			hold(held)
			limitPods(ctx, name, "3")
			if other.Writes() > before {
				turns++
			}
			Expect(createAtOnce(ctx, name)).To(HaveEach(suite.BeExceeded(name, "pods")), "round %d", round)
			hold(false)
			limitPods(ctx, name, "6")
		}
		Expect(turns).To(BeNumerically(">", rounds/10), "some edits are to be asked of the other replica, which writes them to the ledger")
	},
		Entry("while no replica has seen the edit", true),
		Entry("while replicas see the edit as soon as they can", false),
	)

	It("binds also if the quota has no ledger yet", func(ctx SpecContext) {
		const name = "unwritten"
		leader.Inject(proxy.Rates{proxy.Unavailable: 1})
		DeferCleanup(leader.Inject, proxy.Rates{})
		DeferCleanup(hold, false)
		quota := builders.Quota(name).Label("team", name).Hard("pods", "6").Obj()
		suite.Create(ctx, admin, builders.Namespace(name).Label("team", name).Obj(), quota)
		Eventually(ctx, createAtOnce).WithArguments(name, client.DryRunAll).Should(HaveEach(suite.BeUncounted(name, "pods")))
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(quota), &quotav1.QuotaLedger{})).To(Satisfy(apierrors.IsNotFound))
		hold(true)
		limitPods(ctx, name, "3")
		leader.Inject(nil)
		for i := range 3 {
			suite.Create(ctx, admin, builders.Pod(name, fmt.Sprint("p", i)).Obj())
		}
		Expect(createAtOnce(ctx, name)).To(HaveEach(suite.BeExceeded(name, "pods")))
	})
})

// restingWrites returns how many writes of ledgers a replica has tried, once those of the edit
// before are over.
func restingWrites(ctx context.Context, replica *proxy.Proxy) int {
	GinkgoHelper()
	writes := 0
	Eventually(ctx, func() bool {
		before := writes
		writes = replica.Writes()
		return writes == before
	}).MustPassRepeatedly(5).Should(BeTrue())
	return writes
}

// createAtOnce asks for pods in a namespace, so many at once that both replicas are asked, and returns the answers.
func createAtOnce(ctx context.Context, namespace string, options ...client.CreateOption) []error {
	return createMany(ctx, namespace, 6, options...)
}

func createMany(ctx context.Context, namespace string, count int, options ...client.CreateOption) []error {
	answers := make([]error, count)
	var group sync.WaitGroup
	for i := range answers {
		group.Go(func() { answers[i] = admin.Create(ctx, builders.Pod(namespace, "late").Generated().Obj(), options...) })
	}
	group.Wait()
	return answers
}

// limitPods edits one limit. An edit is refused if the replica that is asked can't write the ledger.
func limitPods(ctx context.Context, quota, limit string) {
	GinkgoHelper()
	patch := suite.Merge(fmt.Sprintf(`{"spec":{"quota":{"hard":{"pods":%q}}}}`, limit))
	Eventually(ctx, func(ctx context.Context) error { return admin.Patch(ctx, builders.Quota(quota).Obj(), patch) }).Should(Succeed())
}
