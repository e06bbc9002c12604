// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// scoped is a restriction of a quota, with an object that falls under it and
// one that doesn't.
type scoped struct {
	restrict func(*builders.QuotaBuilder) *builders.QuotaBuilder
	limited  corev1.ResourceName
	inside   func(namespace, name string) client.Object
	outside  func(namespace, name string) client.Object
}

// limitsOnlyWhatIsInside shows that what is inside is counted and denied, and
// what is outside neither.
func (s scoped) limitsOnlyWhatIsInside(ctx SpecContext) {
	GinkgoHelper()
	team := newTeam()
	namespace := team.namespace(ctx)
	// What was there before must be told apart by counting, what comes by admission.
	mustCreate(ctx, s.outside(namespace, "outside-before"))
	mustCreate(ctx, s.inside(namespace, "inside-before"))
	quota := enforce(ctx, s.restrict(team.quota().Hard(s.limited, "2")))
	resource := string(s.limited)
	eventuallyUses(ctx, quota, resource+"=1")

	mustCreate(ctx, s.outside(namespace, "outside"))
	mustCreate(ctx, s.inside(namespace, "inside"))
	Expect(api.Create(ctx, s.inside(namespace, "one-too-many"))).To(BeRefused(exceeded(quota.Name, resource, "1", "2", "2")))
	mustCreate(ctx, s.outside(namespace, "outside-still"))
	eventuallyUses(ctx, quota, resource+"=2")
}

var _ = Describe("A quota of a scope", func() {
	const pods, claims = corev1.ResourcePods, corev1.ResourcePersistentVolumeClaims
	type objects = func(namespace, name string) client.Object
	pod := func(build func(*builders.PodBuilder) *builders.PodBuilder) objects {
		return func(namespace, name string) client.Object { return build(builders.Pod(namespace, name)).Obj() }
	}
	bestEffort := pod(func(p *builders.PodBuilder) *builders.PodBuilder { return p })
	burstable := pod(func(p *builders.PodBuilder) *builders.PodBuilder { return p.Request("cpu", "1m") })
	terminating := pod(func(p *builders.PodBuilder) *builders.PodBuilder { return p.Deadline(3600) })
	busyTerminating := pod(func(p *builders.PodBuilder) *builders.PodBuilder { return p.Deadline(3600).Request("cpu", "1m") })
	high := pod(func(p *builders.PodBuilder) *builders.PodBuilder { return p.PriorityClass("high") })
	low := pod(func(p *builders.PodBuilder) *builders.PodBuilder { return p.PriorityClass("low") })
	crossing := pod(func(p *builders.PodBuilder) *builders.PodBuilder { return p.AwayFrom("elsewhere") })
	ordinary := bestEffort
	plainClaim := func(namespace, name string) client.Object { return builders.VolumeClaim(namespace, name).Obj() }
	fast := func(namespace, name string) client.Object {
		return builders.VolumeClaim(namespace, name).AttributesClass("fast").Obj()
	}
	slow := func(namespace, name string) client.Object {
		return builders.VolumeClaim(namespace, name).AttributesClass("slow").Obj()
	}

	type restriction = func(*builders.QuotaBuilder) *builders.QuotaBuilder
	scopes := func(scopes ...corev1.ResourceQuotaScope) restriction {
		return func(q *builders.QuotaBuilder) *builders.QuotaBuilder { return q.Scopes(scopes...) }
	}
	selector := func(scope corev1.ResourceQuotaScope, operator corev1.ScopeSelectorOperator, values ...string) restriction {
		return func(q *builders.QuotaBuilder) *builders.QuotaBuilder {
			return q.ScopeSelector(scope, operator, values...)
		}
	}
	const (
		in           = corev1.ScopeSelectorOpIn
		notIn        = corev1.ScopeSelectorOpNotIn
		exists       = corev1.ScopeSelectorOpExists
		doesNotExist = corev1.ScopeSelectorOpDoesNotExist
	)

	DescribeTable("limits only what is in it",
		func(ctx SpecContext, s scoped) { s.limitsOnlyWhatIsInside(ctx) },
		Entry("Terminating", scoped{scopes(corev1.ResourceQuotaScopeTerminating), pods, terminating, ordinary}),
		Entry("NotTerminating", scoped{scopes(corev1.ResourceQuotaScopeNotTerminating), pods, ordinary, terminating}),
		Entry("BestEffort", scoped{scopes(corev1.ResourceQuotaScopeBestEffort), pods, bestEffort, burstable}),
		Entry("NotBestEffort, burstable", scoped{scopes(corev1.ResourceQuotaScopeNotBestEffort), pods, burstable, bestEffort}),
		Entry("PriorityClass", scoped{scopes(corev1.ResourceQuotaScopePriorityClass), pods, low, ordinary}),
		Entry("CrossNamespacePodAffinity", scoped{scopes(corev1.ResourceQuotaScopeCrossNamespacePodAffinity), pods, crossing, ordinary}),
		Entry("VolumeAttributesClass", suite.Since(volumeAttributesSince), scoped{scopes(corev1.ResourceQuotaScopeVolumeAttributesClass), claims, fast, plainClaim}),
		Entry("Terminating and NotBestEffort, not with one of them alone", scoped{
			scopes(corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotBestEffort), pods, busyTerminating, terminating}),

		Entry("selector PriorityClass In", scoped{selector(corev1.ResourceQuotaScopePriorityClass, in, "high"), pods, high, low}),
		Entry("selector PriorityClass NotIn", scoped{selector(corev1.ResourceQuotaScopePriorityClass, notIn, "low"), pods, high, low}),
		Entry("selector PriorityClass Exists", scoped{selector(corev1.ResourceQuotaScopePriorityClass, exists), pods, high, ordinary}),
		Entry("selector PriorityClass DoesNotExist", scoped{
			selector(corev1.ResourceQuotaScopePriorityClass, doesNotExist), pods, ordinary, high}),
		Entry("selector VolumeAttributesClass In", suite.Since(volumeAttributesSince), scoped{selector(corev1.ResourceQuotaScopeVolumeAttributesClass, in, "fast"), claims, fast, slow}),
		Entry("selector VolumeAttributesClass NotIn", suite.Since(volumeAttributesSince), scoped{
			selector(corev1.ResourceQuotaScopeVolumeAttributesClass, notIn, "slow"), claims, fast, slow}),
		Entry("selector VolumeAttributesClass Exists", suite.Since(volumeAttributesSince), scoped{
			selector(corev1.ResourceQuotaScopeVolumeAttributesClass, exists), claims, slow, plainClaim}),
		Entry("selector VolumeAttributesClass DoesNotExist", suite.Since(volumeAttributesSince), scoped{
			selector(corev1.ResourceQuotaScopeVolumeAttributesClass, doesNotExist), claims, plainClaim, fast}),
	)

	It("charges a pod that an update moves into it", func(ctx SpecContext) {
		team := newTeam()
		running := enforce(ctx, builders.Quota(team.name+"-running").Label(teamLabel, team.name).
			Hard("pods", "5").Scopes(corev1.ResourceQuotaScopeNotTerminating))
		ending := enforce(ctx, builders.Quota(team.name+"-ending").Label(teamLabel, team.name).
			Hard("pods", "1").Hard("requests.cpu", "1").Scopes(corev1.ResourceQuotaScopeTerminating))
		namespace := team.namespace(ctx)
		first := mustCreate(ctx, builders.Pod(namespace, "first").Request("cpu", "700m").Obj())
		second := mustCreate(ctx, builders.Pod(namespace, "second").Obj())
		eventuallyUses(ctx, running, "pods=2")
		eventuallyUses(ctx, ending, "pods=0,requests.cpu=0")

		Expect(setDeadline(ctx, first, 3600)).To(Succeed())
		eventuallyUses(ctx, running, "pods=1")
		eventuallyUses(ctx, ending, "pods=1,requests.cpu=700m")
		Expect(setDeadline(ctx, second, 3600)).To(BeRefused(
			"failed quota: " + ending.Name + ": must specify requests.cpu for: app"))
		third := mustCreate(ctx, builders.Pod(namespace, "third").Request("cpu", "100m").Obj())
		Expect(setDeadline(ctx, third, 3600)).To(BeRefused(exceeded(ending.Name, "pods", "1", "1", "1")))

		By("shortening a deadline, which moves nothing")
		Expect(setDeadline(ctx, first, 60)).To(Succeed())
		eventuallyUses(ctx, ending, "pods=1,requests.cpu=700m")
	})

	It("charges a volume claim that an update moves into it", suite.Since(volumeAttributesSince), func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("requests.storage", "1Gi").
			ScopeSelector(corev1.ResourceQuotaScopeVolumeAttributesClass, in, "fast"))
		namespace := team.namespace(ctx)
		first := mustCreate(ctx, builders.VolumeClaim(namespace, "first").StorageClass("gold").Obj())
		second := mustCreate(ctx, builders.VolumeClaim(namespace, "second").StorageClass("gold").Obj())
		eventuallyUses(ctx, quota, "requests.storage=0")
		bind(ctx, first)
		bind(ctx, second)

		Expect(setAttributesClass(ctx, first, "fast")).To(Succeed())
		eventuallyUses(ctx, quota, "requests.storage=1Gi")
		Expect(setAttributesClass(ctx, second, "fast")).To(BeRefused(exceeded(quota.Name, "requests.storage", "1Gi", "1Gi", "1Gi")))
	})
})

func setDeadline(ctx context.Context, pod *corev1.Pod, seconds int64) error {
	wanted := pod.DeepCopy()
	wanted.Spec.ActiveDeadlineSeconds = &seconds
	return api.Patch(ctx, wanted, client.StrategicMergeFrom(pod))
}

func setAttributesClass(ctx context.Context, claim *corev1.PersistentVolumeClaim, class string) error {
	wanted := claim.DeepCopy()
	wanted.Spec.VolumeAttributesClassName = ptr.To(class)
	return api.Patch(ctx, wanted, client.MergeFrom(claim))
}
