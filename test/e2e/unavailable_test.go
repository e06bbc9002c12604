// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"maps"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// condition polls one condition of a quota, as conditionOf puts it.
func condition(quota client.Object, kind string) func(ctx context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		current := &quotav1.ClusterResourceQuota{}
		err := api.Get(ctx, client.ObjectKeyFromObject(quota), current)
		return conditionOf(current, kind), err
	}
}

var _ = Describe("A resource that the cluster doesn't serve", func() {
	It("is named by a condition, degrades nothing else, and is limited once it is there", func(ctx SpecContext) {
		gadget := schema.GroupVersionKind{Group: "late.example.com", Version: "v1", Kind: "Gadget"}
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "1").Hard("count/gadgets.late.example.com", "1"))
		namespace := team.namespace(ctx)
		Eventually(ctx, condition(quota, quotav1.ConditionResourceUnavailable)).Should(
			Equal("True NotServed: the cluster doesn't serve gadgets.late.example.com; counting begins once it does: " +
				"install what defines this, or remove it from spec.quota.hard"))

		By("limiting the quota's other resource")
		mustCreate(ctx, builders.Pod(namespace, "p1").Obj())
		Expect(api.Create(ctx, builders.Pod(namespace, "p2").Obj())).To(BeRefused(exceeded(quota.Name, "pods", "1", "1", "1")))
		eventuallyUses(ctx, quota, "pods=1")

		By("defining the resource")
		definition := installCustomResource(ctx, gadget, "gadgets")
		gadgets := func(name string) client.Object { return builders.Custom(gadget, namespace, name) }
		Eventually(ctx, condition(quota, quotav1.ConditionResourceUnavailable)).Should(HavePrefix("False"))
		waitUntilEnforced(ctx, quota)
		mustCreate(ctx, gadgets("g1"))
		eventuallyUses(ctx, quota, "count/gadgets.late.example.com=1,pods=1")
		Expect(api.Create(ctx, gadgets("g2"))).To(
			BeRefused(exceeded(quota.Name, "count/gadgets.late.example.com", "1", "1", "1")))

		By("removing it again")
		mustDelete(ctx, definition)
		Eventually(ctx, condition(quota, quotav1.ConditionResourceUnavailable)).Should(
			And(HavePrefix("True"), ContainSubstring("gadgets.late.example.com")))
		Expect(api.Create(ctx, builders.Pod(namespace, "p2").Obj())).To(BeRefused(exceeded(quota.Name, "pods", "1", "1", "1")))
	})

	It("in the version that it was counted in is counted in another within 15 seconds", func(ctx SpecContext) {
		var name, namespace string
		var stable schema.GroupVersionKind
		var quota *quotav1.ClusterResourceQuota
		inTime(15*time.Second, func() time.Duration {
			team := newTeam()
			alpha := schema.GroupVersionKind{Group: team.name + ".example.com", Version: "v1alpha1", Kind: "Gizmo"}
			stable, name = alpha.GroupKind().WithVersion("v1"), "count/gizmos."+alpha.Group
			definition := installCustomResource(ctx, alpha, "gizmos")
			quota = enforce(ctx, team.quota().Hard(corev1.ResourceName(name), "3"))
			namespace = team.namespace(ctx)
			mustCreate(ctx, builders.Custom(alpha, namespace, "before"))
			eventuallyUses(ctx, quota, name+"=1")

			By("serving it in v1 alone")
			Expect(api.Get(ctx, client.ObjectKeyFromObject(definition), definition)).To(Succeed())
			next := definition.Spec.Versions[0]
			next.Name = stable.Version
			definition.Spec.Versions[0].Served, definition.Spec.Versions[0].Storage = false, false
			definition.Spec.Versions = append(definition.Spec.Versions, next)
			Expect(api.Update(ctx, definition)).To(Succeed())
			Eventually(ctx, func(ctx context.Context) error {
				return api.List(ctx, listOf(alpha), client.InNamespace(namespace))
			}).Should(HaveOccurred(), "v1alpha1 must no longer be served")
			Eventually(ctx, func(ctx context.Context) error {
				return api.Create(ctx, builders.Custom(stable, namespace, "during"))
			}).Should(Succeed(), "v1 must be served")

			served := time.Now()
			eventuallyUses(ctx, quota, name+"=2")
			return time.Since(served)
		})
		Eventually(ctx, condition(quota, quotav1.ConditionResourceUnavailable)).Should(HavePrefix("False"))

		By("enforcing the limit on what v1 creates and deletes")
		last := mustCreate(ctx, builders.Custom(stable, namespace, "last"))
		Expect(api.Create(ctx, builders.Custom(stable, namespace, "more"))).To(BeRefused(exceeded(quota.Name, name, "1", "3", "3")))
		mustDelete(ctx, last)
		eventuallyUses(ctx, quota, name+"=2")
	})

	It("by this name, but by another, is named with that, and keeps nobody waiting", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "1").Hard("count/jobs", "1").Hard("count/ingresses.extensions", "1").
			Hard("limits.example.com/gpu", "1").Hard("count/services.loadbalancers", "1").Hard("count/deploymentconfigs.apps", "1"))
		Eventually(ctx, condition(quota, quotav1.ConditionReady)).Should(HavePrefix("True Counted"))
		Eventually(ctx, condition(quota, quotav1.ConditionStalled)).Should(And(HavePrefix("True NotLimitable"),
			ContainSubstring("count/ingresses.extensions (write count/ingresses.networking.k8s.io)"),
			ContainSubstring("count/jobs (write count/jobs.batch)"),
			ContainSubstring("count/services.loadbalancers (write services.loadbalancers)"),
			ContainSubstring("limits.example.com/gpu (write requests.example.com/gpu)"),
			ContainSubstring("the cluster doesn't serve deploymentconfigs.apps; ")))
		mustCreate(ctx, builders.Pod(team.namespace(ctx), "p1").Obj())
		eventuallyUses(ctx, quota, "pods=1")

		By("correcting them, but for what may be installed")
		change(ctx, quota, func(spec *quotav1.ClusterResourceQuotaSpec) {
			maps.DeleteFunc(spec.Quota.Hard, func(name corev1.ResourceName, _ resource.Quantity) bool {
				return name != "pods" && name != "count/deploymentconfigs.apps"
			})
		})
		Eventually(ctx, condition(quota, quotav1.ConditionReconciling)).Should(
			HavePrefix("True Progressing: ResourceUnavailable is True, NotServed"))
		Eventually(ctx, condition(quota, quotav1.ConditionReady)).Should(HavePrefix("True Counted"))
	})

	It("in namespaces at all is named by a condition", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "1").Hard("count/nodes", "1"))
		Eventually(ctx, condition(quota, quotav1.ConditionResourceUnavailable)).Should(
			Equal("True NotLimitable: a quota over namespaces can't limit objects outside of them: nodes; " +
				"remove this from spec.quota.hard"))
		mustCreate(ctx, builders.Pod(team.namespace(ctx), "p1").Obj())
		eventuallyUses(ctx, quota, "pods=1")
	})
})
