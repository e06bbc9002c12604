// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package production

import (
	"context"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// The leader's clock is wrong, and that of the other replica is right. Another webhook takes two seconds with each pod.
var _ = Describe("Clocks that are wrong", Ordered, ContinueOnFailure, func() {
	AfterAll(func() { replicas.Clock = 0 })

	DescribeTable("let nothing exceed a limit, and no honest request be refused", func(ctx SpecContext, wrong time.Duration) {
		const tight, wide, honest = 10, 100, 60
		replicas.StopAll()
		replicas.Args, replicas.Config = []string{"--status-interval=100ms"}, nil
		for _, replicas.Clock = range []time.Duration{wrong, 0} {
			replicas.Add(ctx)
			Eventually(ctx, leader).WithTimeout(2*suite.Deadline).Should(BeZero(), "the clock of the leader is the wrong one")
		}
		full, free := fmt.Sprint("full-", wrong), fmt.Sprint("free-", wrong)
		for name, hard := range map[string]int{full: tight, free: wide} {
			limited(ctx, builders.Quota(name).Hard("pods", fmt.Sprint(hard)))
			suite.SlowDown(ctx, admin, name, 2*time.Second)
		}
		var rounds sync.WaitGroup
		for round := range 3 { // the last ones come while the first are on their way
			rounds.Go(func() {
				defer GinkgoRecover()
				clock.RealClock{}.Sleep(time.Duration(round) * time.Second)
				for _, err := range createMany(ctx, full, 2*tight) {
					Expect(err).To(Or(Succeed(), suite.BeExceeded(full, "pods")))
				}
			})
			rounds.Go(func() {
				defer GinkgoRecover()
				clock.RealClock{}.Sleep(time.Duration(round) * 3500 * time.Millisecond)
				Expect(createMany(ctx, free, honest/3)).To(HaveEach(Succeed()), "round %d", round)
			})
		}
		rounds.Wait()
		Expect(podsIn(ctx, full)).To(Equal(tight))
		Expect(podsIn(ctx, free)).To(Equal(honest))

		// The API server's clock says when a deletion began.
		leaving := fmt.Sprint("leaving-", wrong)
		limited(ctx, builders.Quota(leaving).Hard("pods", "1"))
		pod := builders.Pod(leaving, "leaves").OnNode("none", 30).Obj()
		suite.Create(ctx, admin, pod)
		Expect(admin.Delete(ctx, pod)).To(Succeed())
		Consistently(ctx, func(ctx context.Context) error {
			return admin.Create(ctx, builders.Pod(leaving, "comes").Obj(), client.DryRunAll)
		}).WithTimeout(2 * time.Second).Should(suite.BeExceeded(leaving, "pods"))
	},
		Entry("75 seconds ahead", 75*time.Second),
		Entry("75 seconds behind", -75*time.Second),
		Entry("an hour ahead", time.Hour),
		Entry("an hour behind", -time.Hour),
	)
})

func podsIn(ctx context.Context, namespace string) int {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(admin.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	return len(list.Items)
}
