// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"maps"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
)

var _ = Describe("A namespace", func() {
	It("brings what it holds when it is labelled, and takes it along when the label goes", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "3"))
		settled := team.namespace(ctx)
		mustCreate(ctx, builders.Pod(settled, "p1").Obj())
		newcomer := mustCreate(ctx, builders.Namespace(team.nextName()).Obj())
		mustCreate(ctx, builders.Pod(newcomer.Name, "p1").Obj())
		mustCreate(ctx, builders.Pod(newcomer.Name, "p2").Obj())
		eventuallyUses(ctx, quota, "pods=1")

		By("labelling the namespace")
		relabel(ctx, newcomer, map[string]string{teamLabel: team.name})
		eventuallyUses(ctx, quota, "pods=3")
		full := exceeded(quota.Name, "pods", "1", "3", "3")
		// The API server sees the label in its own time.
		Eventually(ctx, api.Create).WithArguments(builders.Pod(newcomer.Name, "p3").Obj(), client.DryRunAll).Should(BeRefused(full))
		Expect(api.Create(ctx, builders.Pod(newcomer.Name, "p3").Obj())).To(BeRefused(full))
		Expect(api.Create(ctx, builders.Pod(settled, "p2").Obj())).To(BeRefused(full))

		By("taking the label away")
		relabel(ctx, newcomer, nil)
		mustCreate(ctx, builders.Pod(newcomer.Name, "p3").Obj())
		eventuallyUses(ctx, quota, "pods=1")
		mustCreate(ctx, builders.Pod(settled, "p2").Obj())
	})

	It("that holds more than the limit leaves may join, and nothing is evicted", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "1"))
		crowded := mustCreate(ctx, builders.Namespace(team.nextName()).Obj())
		for _, name := range []string{"p1", "p2", "p3"} {
			mustCreate(ctx, builders.Pod(crowded.Name, name).Obj())
		}
		relabel(ctx, crowded, map[string]string{teamLabel: team.name})
		eventuallyUses(ctx, quota, "pods=3")
		full := exceeded(quota.Name, "pods", "1", "3", "1")
		Eventually(ctx, api.Create).WithArguments(builders.Pod(crowded.Name, "p4").Obj(), client.DryRunAll).Should(BeRefused(full))
		Expect(api.Create(ctx, builders.Pod(crowded.Name, "p4").Obj())).To(BeRefused(full))
		Expect(podsOf(ctx, []string{crowded.Name})).To(HaveLen(3))
	})

	It("that moves from one team to another is counted by the other alone", func(ctx SpecContext) {
		before, after := newTeam(), newTeam()
		quotaBefore := enforce(ctx, before.quota().Hard("pods", "5"))
		quotaAfter := enforce(ctx, after.quota().Hard("pods", "5"))
		namespace := mustCreate(ctx, builders.Namespace(before.nextName()).Label(teamLabel, before.name).Obj())
		mustCreate(ctx, builders.Pod(namespace.Name, "p1").Obj())
		eventuallyUses(ctx, quotaBefore, "pods=1")

		relabel(ctx, namespace, map[string]string{teamLabel: after.name})
		eventuallyUses(ctx, quotaAfter, "pods=1")
		eventuallyUses(ctx, quotaBefore, "pods=0")
	})

	It("gives back what it held when it is deleted", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "2").Hard("secrets", "2"))
		doomed := mustCreate(ctx, builders.Namespace(team.nextName()).Label(teamLabel, team.name).Obj())
		survivor := team.namespace(ctx)
		mustCreate(ctx, builders.Pod(doomed.Name, "p1").Obj())
		mustCreate(ctx, builders.Pod(doomed.Name, "p2").Obj())
		mustCreate(ctx, builders.Secret(doomed.Name, "s1"))
		mustCreate(ctx, builders.Secret(survivor, "s1"))
		eventuallyUses(ctx, quota, "pods=2,secrets=2")

		mustDelete(ctx, doomed)
		eventuallyUses(ctx, quota, "pods=0,secrets=1")
		Eventually(ctx, func(ctx context.Context) error {
			return api.Get(ctx, client.ObjectKeyFromObject(doomed), &corev1.Namespace{})
		}).Should(MatchError(ContainSubstring("not found")))
		Eventually(ctx, func(ctx context.Context) string { return slice(ctx, quota, doomed.Name) }).Should(Equal("not selected"))
		mustCreate(ctx, builders.Pod(survivor, "p1").Obj())
	})

	It("that is new is limited from its first moment", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "1"))
		mustCreate(ctx, builders.Pod(team.namespace(ctx), "p1").Obj())
		for range 20 {
			Expect(api.Create(ctx, builders.Pod(team.namespace(ctx), "p1").Obj())).To(
				BeRefused(exceeded(quota.Name, "pods", "1", "1", "1")))
		}
		eventuallyUses(ctx, quota, "pods=1")
	})

	It("that the cluster needs to heal itself is never limited", func(ctx SpecContext) {
		team := newTeam()
		enforce(ctx, team.quota().Hard("configmaps", "0").Hard("pods", "0"))
		system := mustGetNamespace(ctx, metav1.NamespaceSystem)
		relabel(ctx, system, map[string]string{teamLabel: team.name})
		DeferCleanup(func(ctx context.Context) { relabel(ctx, mustGetNamespace(ctx, metav1.NamespaceSystem), nil) })
		mustCreate(ctx, builders.ConfigMap(system.Name, unique("healing")))
		mustCreate(ctx, builders.Pod(system.Name, unique("healing")).Obj())
	})

	It("is not limited by the quota of another team", func(ctx SpecContext) {
		team, other := newTeam(), newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "0"))
		mustCreate(ctx, builders.Pod(other.namespace(ctx), "p1").Obj())
		Expect(api.Create(ctx, builders.Pod(team.namespace(ctx), "p1").Obj())).To(
			BeRefused(exceeded(quota.Name, "pods", "1", "0", "0")))
	})
})

var _ = Describe("A selector", func() {
	It("by annotation selects the namespaces that carry exactly that annotation", func(ctx SpecContext) {
		const key = "example.com/requester"
		team := newTeam()
		quota := enforce(ctx, builders.Quota(team.name).Annotation(key, team.name).Hard("pods", "1"))
		alice := mustCreate(ctx, builders.Namespace(team.nextName()).Annotation(key, team.name).Obj())
		bob := mustCreate(ctx, builders.Namespace(team.nextName()).Annotation(key, "bob").Obj())
		mustCreate(ctx, builders.Pod(alice.Name, "p1").Obj())
		mustCreate(ctx, builders.Pod(bob.Name, "p1").Obj())
		eventuallyUses(ctx, quota, "pods=1")
		full := exceeded(quota.Name, "pods", "1", "1", "1")
		Expect(api.Create(ctx, builders.Pod(alice.Name, "p2").Obj())).To(BeRefused(full))

		By("changing the annotations")
		before := bob.DeepCopy()
		bob.Annotations[key] = team.name
		Expect(api.Patch(ctx, bob, client.MergeFrom(before))).To(Succeed())
		eventuallyUses(ctx, quota, "pods=2")
		Expect(api.Create(ctx, builders.Pod(bob.Name, "p2").Obj())).To(
			BeRefused(exceeded(quota.Name, "pods", "1", "2", "1")))
	})

	It("by label and annotation selects the namespaces that carry both", func(ctx SpecContext) {
		const key = "example.com/requester"
		team := newTeam()
		quota := enforce(ctx, team.quota().Annotation(key, "alice").Hard("pods", "0"))
		labelled := team.namespace(ctx)
		both := mustCreate(ctx, builders.Namespace(team.nextName()).Label(teamLabel, team.name).Annotation(key, "alice").Obj())
		mustCreate(ctx, builders.Pod(labelled, "p1").Obj())
		Expect(api.Create(ctx, builders.Pod(both.Name, "p1").Obj())).To(
			BeRefused(exceeded(quota.Name, "pods", "1", "0", "0")))
	})

	DescribeTable("by expression selects the namespaces that match it",
		func(ctx SpecContext, operator metav1.LabelSelectorOperator, values []string, stageOfSelected, stageOfOther string) {
			const key = "stage"
			team := newTeam()
			quota := team.quota().Hard("pods", "0")
			selector := quota.Obj().Spec.Selector.LabelSelector
			selector.MatchExpressions = append(selector.MatchExpressions,
				metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: values})
			enforce(ctx, quota)
			namespace := func(stage string) string {
				builder := builders.Namespace(team.nextName()).Label(teamLabel, team.name)
				if stage != "" {
					builder.Label(key, stage)
				}
				return mustCreate(ctx, builder.Obj()).Name
			}
			mustCreate(ctx, builders.Pod(namespace(stageOfOther), "p1").Obj())
			Expect(api.Create(ctx, builders.Pod(namespace(stageOfSelected), "p1").Obj())).To(
				BeRefused(exceeded(team.name, "pods", "1", "0", "0")))
		},
		Entry("In", metav1.LabelSelectorOpIn, []string{"dev", "test"}, "dev", "prod"),
		Entry("NotIn", metav1.LabelSelectorOpNotIn, []string{"prod"}, "dev", "prod"),
		Entry("NotIn, without the label", metav1.LabelSelectorOpNotIn, []string{"prod"}, "", "prod"),
		Entry("Exists", metav1.LabelSelectorOpExists, nil, "dev", ""),
		Entry("DoesNotExist", metav1.LabelSelectorOpDoesNotExist, nil, "", "dev"),
	)
})

// relabel replaces the team label of a namespace, or takes it away.
func relabel(ctx context.Context, namespace *corev1.Namespace, labels map[string]string) {
	GinkgoHelper()
	before := namespace.DeepCopy()
	delete(namespace.Labels, teamLabel)
	maps.Copy(namespace.Labels, labels)
	Expect(api.Patch(ctx, namespace, client.MergeFrom(before))).To(Succeed())
}

func mustGetNamespace(ctx context.Context, name string) *corev1.Namespace {
	GinkgoHelper()
	namespace := &corev1.Namespace{}
	Expect(api.Get(ctx, client.ObjectKey{Name: name}, namespace)).To(Succeed())
	return namespace
}
