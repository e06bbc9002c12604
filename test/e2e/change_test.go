// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

type spec = quotav1.ClusterResourceQuotaSpec

// hard returns a change of one limit.
func hard(name corev1.ResourceName, quantity string) func(*spec) {
	return func(spec *spec) { spec.Quota.Hard[name] = resource.MustParse(quantity) }
}

var _ = Describe("A quota that is changed", func() {
	It("lets more in when a limit is raised", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "1"))
		namespace := team.namespace(ctx)
		mustCreate(ctx, builders.Pod(namespace, "p1").Obj())
		Expect(api.Create(ctx, builders.Pod(namespace, "p2").Obj())).To(BeRefused(exceeded(quota.Name, "pods", "1", "1", "1")))

		change(ctx, quota, hard("pods", "2"))
		mustCreate(ctx, builders.Pod(namespace, "p2").Obj())
		Expect(api.Create(ctx, builders.Pod(namespace, "p3").Obj())).To(BeRefused(exceeded(quota.Name, "pods", "1", "2", "2")))
	})

	It("lets nothing more in when a limit is lowered below what is used, and evicts nothing", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "3"))
		namespace := team.namespace(ctx)
		for _, name := range []string{"p1", "p2", "p3"} {
			mustCreate(ctx, builders.Pod(namespace, name).Obj())
		}
		eventuallyUses(ctx, quota, "pods=3")

		change(ctx, quota, hard("pods", "1"))
		Expect(api.Create(ctx, builders.Pod(namespace, "p4").Obj())).To(BeRefused(exceeded(quota.Name, "pods", "1", "3", "1")))
		Expect(podsOf(ctx, []string{namespace})).To(HaveLen(3))
		eventuallyUses(ctx, quota, "pods=3")

		By("deleting pods, which helps only once there are fewer than the limit")
		for i, pod := range podsOf(ctx, []string{namespace})[:2] {
			mustDelete(ctx, &pod)
			eventuallyUses(ctx, quota, "pods="+[]string{"2", "1"}[i])
		}
		Expect(api.Create(ctx, builders.Pod(namespace, "p4").Obj())).To(BeRefused(exceeded(quota.Name, "pods", "1", "1", "1")))
	})

	It("limits a resource as soon as it is added, counting what is there, and no longer once it is removed", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "10"))
		namespace := team.namespace(ctx)
		mustCreate(ctx, builders.ConfigMap(namespace, "c1"))
		mustCreate(ctx, builders.Pod(namespace, "p1").Obj())

		change(ctx, quota, hard("configmaps", "2"))
		eventuallyUses(ctx, quota, "configmaps=1,pods=1")
		mustCreate(ctx, builders.ConfigMap(namespace, "c2"))
		Expect(api.Create(ctx, builders.ConfigMap(namespace, "c3"))).To(BeRefused(exceeded(quota.Name, "configmaps", "1", "2", "2")))

		change(ctx, quota, func(spec *spec) { delete(spec.Quota.Hard, "configmaps") })
		mustCreate(ctx, builders.ConfigMap(namespace, "c3"))
		eventuallyUses(ctx, quota, "pods=1")
	})

	It("follows a changed scopeSelector", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "1").
			ScopeSelector(corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpIn, "high"))
		namespace := team.namespace(ctx)
		pod := func(name, class string) *corev1.Pod { return builders.Pod(namespace, name).PriorityClass(class).Obj() }
		mustCreate(ctx, pod("h1", "high"))
		mustCreate(ctx, pod("l1", "low"))
		mustCreate(ctx, pod("l2", "low"))
		eventuallyUses(ctx, quota, "pods=1")
		Expect(api.Create(ctx, pod("h2", "high"))).To(BeRefused(exceeded(quota.Name, "pods", "1", "1", "1")))

		change(ctx, quota, func(spec *spec) { spec.Quota.ScopeSelector.MatchExpressions[0].Values = []string{"low"} })
		eventuallyUses(ctx, quota, "pods=2")
		Expect(api.Create(ctx, pod("l3", "low"))).To(BeRefused(exceeded(quota.Name, "pods", "1", "2", "1")))
		mustCreate(ctx, pod("h2", "high"))

		change(ctx, quota, func(spec *spec) { spec.Quota.ScopeSelector = nil })
		eventuallyUses(ctx, quota, "pods=4")
	})

	It("follows a changed selector", func(ctx SpecContext) {
		team, other := newTeam(), newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "2"))
		before, after := team.namespace(ctx), other.namespace(ctx)
		mustCreate(ctx, builders.Pod(before, "p1").Obj())
		mustCreate(ctx, builders.Pod(after, "p1").Obj())
		mustCreate(ctx, builders.Pod(after, "p2").Obj())
		eventuallyUses(ctx, quota, "pods=1")

		change(ctx, quota, func(spec *spec) { spec.Selector.LabelSelector.MatchLabels[teamLabel] = other.name })
		eventuallyUses(ctx, quota, "pods=2")
		Expect(slice(ctx, quota, before)).To(Equal("not selected"))
		Expect(api.Create(ctx, builders.Pod(after, "p3").Obj())).To(BeRefused(exceeded(quota.Name, "pods", "1", "2", "2")))
		for _, name := range []string{"p2", "p3"} {
			mustCreate(ctx, builders.Pod(before, name).Obj())
		}
	})
})
