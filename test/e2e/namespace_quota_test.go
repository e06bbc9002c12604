// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
)

var _ = Describe("A ResourceQuota of one namespace", func() {
	It("refuses before room of the shared quota is held", func(ctx SpecContext) {
		const room, attempts, clients = 50, 200, 10
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", fmt.Sprint(room)))
		narrow, others := team.namespace(ctx), team.namespace(ctx)
		nativeQuota(ctx, narrow, corev1.ResourceList{"pods": resource.MustParse("1")})
		mustFit(ctx, narrow, "p1")
		eventuallyUses(ctx, quota, "pods=1")
		// The replica's watch shows a moment later that the ResourceQuota is full.
		const refused = "exceeded quota: narrow, requested: pods=1, used: pods=1, limited: pods=1"
		Eventually(ctx, func(ctx context.Context) error {
			return api.Create(ctx, builders.Pod(narrow, "more").Obj())
		}).Should(MatchError(And(ContainSubstring(refused), ContainSubstring("admission webhook"))))
		before := reservations(ctx, quota)

		By("letting the tenant create what its own quota refuses")
		var group sync.WaitGroup
		for client := range clients {
			group.Go(func() {
				defer GinkgoRecover()
				for range attempts / clients {
					err := api.Create(ctx, builders.Pod(narrow, fmt.Sprintf("client%d", client)).Generated().Obj())
					Expect(err).To(MatchError(ContainSubstring(refused)))
				}
			})
		}
		group.Wait()
		after := reservations(ctx, quota)
		held := len(after)
		AddReportEntry("places held by what is refused", fmt.Sprintf("%d before, %d after %d attempts", len(before), held, attempts))
		// That of p1 may be settled in between.
		Expect(before).To(ContainElements(after))

		By("letting others have what is free")
		for i := range room - 1 - held {
			mustCreate(ctx, builders.Pod(others, fmt.Sprintf("p%d", i)).Obj())
		}
		Expect(held).To(BeNumerically("<=", room/5))
	})

	It("counts what is under way, so that requests at once hold no more than one by one", func(ctx SpecContext) {
		const attempts, room = 20, 3
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "50"))
		namespace := team.namespace(ctx)
		nativeQuota(ctx, namespace, corev1.ResourceList{"pods": resource.MustParse(fmt.Sprint(room))})
		Eventually(ctx, func(ctx context.Context) error {
			return api.Create(ctx, builders.Pod(namespace, "tried").Obj(), client.DryRunAll)
		}).Should(Succeed())
		errs := make([]error, attempts)
		var group sync.WaitGroup
		began := time.Now()
		for i := range attempts {
			group.Go(func() { errs[i] = api.Create(ctx, builders.Pod(namespace, fmt.Sprintf("p%d", i)).Obj()) })
		}
		group.Wait()
		AddReportEntry("all are answered after", time.Since(began))
		refused := 0
		for _, err := range errs {
			if err != nil {
				Expect(err).To(MatchError(ContainSubstring("exceeded quota: narrow")))
				refused++
			}
		}
		Expect(refused).To(Equal(attempts - room))
		held := slices.DeleteFunc(reservations(ctx, quota), func(one string) bool { return !strings.Contains(one, namespace) })
		Expect(len(held)).To(BeNumerically("<=", room), "but for the replica's escrow: %v", held)
	})

	It("goes by what is free now, not by what was", func(ctx SpecContext) {
		team := newTeam()
		enforce(ctx, team.quota().Hard("pods", "5"))
		namespace := team.namespace(ctx)
		native := nativeQuota(ctx, namespace, corev1.ResourceList{"pods": resource.MustParse("1")})
		mustFit(ctx, namespace, "p1")
		for i := range 10 {
			// The API server's own refusal would hold room of the shared quota.
			Eventually(ctx, api.Create).WithArguments(builders.Pod(namespace, "more").Obj(), client.DryRunAll).
				Should(MatchError(ContainSubstring("admission webhook")))
			Expect(api.Create(ctx, builders.Pod(namespace, fmt.Sprintf("refused%d", i)).Obj())).
				To(MatchError(ContainSubstring("exceeded quota: narrow")))
			fill := native.DeepCopy()
			fill.Status.Used = corev1.ResourceList{"pods": resource.MustParse("0")}
			fill.ResourceVersion = ""
			Expect(api.Status().Update(ctx, fill)).To(Succeed())
			mustFit(ctx, namespace, fmt.Sprintf("next%d", i))
			if i == 3 {
				break // the shared quota is full
			}
		}
	})
})

// mustFit creates a pod that both quotas have room for. The API server's own admission knows a
// moment after the status was written, and the operator at once: so a dry run, which holds no
// room, is tried until the former knows, and the latter may refuse none.
func mustFit(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	pod := builders.Pod(namespace, name).Obj()
	Eventually(ctx, func(ctx context.Context) error {
		err := api.Create(ctx, pod.DeepCopy(), client.DryRunAll)
		if err != nil && strings.Contains(err.Error(), "admission webhook") {
			return StopTrying("the operator refuses it").Wrap(err)
		}
		return err
	}).Should(Succeed())
	mustCreate(ctx, pod)
}

// nativeQuota makes a ResourceQuota of which nothing is used. The API server's own admission
// counts what it admits; what recounts it doesn't run here.
func nativeQuota(ctx context.Context, namespace string, hard corev1.ResourceList) *corev1.ResourceQuota {
	GinkgoHelper()
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "narrow"}, Spec: corev1.ResourceQuotaSpec{Hard: hard},
	}
	mustCreate(ctx, quota)
	none := corev1.ResourceList{}
	for name := range hard {
		none[name] = resource.MustParse("0")
	}
	quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: none}
	Expect(api.Status().Update(ctx, quota)).To(Succeed())
	return quota
}
