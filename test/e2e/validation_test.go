// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("A quota that makes no sense", func() {
	// Each case spoils a quota that is valid.
	DescribeTable("is refused when it is created and when it is changed, by the field's path",
		func(ctx SpecContext, spoil func(*spec), messages ...string) {
			var refusal []gomegatypes.GomegaMatcher
			for _, message := range messages {
				refusal = append(refusal, ContainSubstring(message))
			}
			team := newTeam()
			spoiled := team.quota().Hard("pods", "1").Obj()
			spoil(&spoiled.Spec)
			err := api.Create(ctx, spoiled)
			Expect(err).To(HaveOccurred(), "creating it")
			Expect(err).To(MatchError(And(refusal...)), "creating it")
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), "creating it: %v", err)

			valid := createQuota(ctx, team.quota().Hard("pods", "1").Obj())
			err = tryChange(ctx, valid, spoil)
			Expect(err).To(HaveOccurred(), "changing it")
			Expect(err).To(MatchError(And(refusal...)), "changing it")
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), "changing it: %v", err)
		},
		Entry("no selector", func(s *spec) { s.Selector.LabelSelector = nil },
			"spec.selector: ", "must restrict the namespaces"),
		Entry("a selector with a value that is no label value", func(s *spec) {
			s.Selector.LabelSelector.MatchLabels["a"] = "not a label value"
		}, "spec.selector.labels.matchLabels"),
		Entry("an unknown scope in the selector", selecting("Sleeping", corev1.ScopeSelectorOpExists),
			"spec.quota.scopeSelector.matchExpressions.scopeName: ", "unsupported scope"),
		Entry("a scope in the selector on what it can't limit", func(s *spec) {
			selecting(corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpExists)(s)
			s.Quota.Hard["secrets"] = resource.MustParse("1")
		}, "spec.quota.scopeSelector.matchExpressions: ", "unsupported scope applied to resource"),
		Entry("In with a value that no object can be compared with", selecting(corev1.ResourceQuotaScopePriorityClass,
			corev1.ScopeSelectorOpIn, "high", "very high"),
			"spec.quota.scopeSelector.matchExpressions[0].values[1]: ", "can't be compared with any object"),
		Entry("a negative limit", hard("pods", "-1"),
			"spec.quota.hard", "must be greater than or equal to 0"),
		Entry("half a pod", hard("pods", "1500m"),
			"spec.quota.hard[pods]: ", "must be an integer"),
		Entry("a limit with a huge exponent", hard("requests.memory", "1e300000000"),
			"spec.quota.hard.requests.memory: ", "should match"),
		Entry("an unqualified resource", hard("gpus", "1"),
			"spec.quota.hard[gpus]: ", "must be a standard resource for quota"),
	)

	DescribeTable("is refused when it is created, for its scopes, which can't be changed later",
		func(ctx SpecContext, spoil func(*spec), message string) {
			quota := newTeam().quota().Hard("pods", "1").Obj()
			spoil(&quota.Spec)
			err := api.Create(ctx, quota)
			Expect(err).To(MatchError(And(ContainSubstring("spec.quota.scopes: "), ContainSubstring(message))))
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), err.Error())
		},
		Entry("an unknown scope", func(s *spec) { s.Quota.Scopes = []corev1.ResourceQuotaScope{"Sleeping"} },
			"unsupported scope"),
		Entry("a scope on what it can't limit", func(s *spec) {
			s.Quota.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}
			s.Quota.Hard["requests.cpu"] = resource.MustParse("1")
		}, "unsupported scope applied to resource"),
	)

	It("lists all that is wrong with it", func(ctx SpecContext) {
		quota := newTeam().quota().Hard("gpus", "1").Hard("pods", "1500m").Scopes("Sleeping").Obj()
		Expect(api.Create(ctx, quota)).To(MatchError(And(
			ContainSubstring("spec.quota.hard[gpus]: "),
			ContainSubstring("spec.quota.hard[pods]: "),
			ContainSubstring("spec.quota.scopes: "))))
	})

	It("is refused what its scopes would become: they can't be changed", func(ctx SpecContext) {
		quota := createQuota(ctx, newTeam().quota().Hard("pods", "1").Scopes(corev1.ResourceQuotaScopeTerminating).Obj())
		for _, scopes := range [][]corev1.ResourceQuotaScope{
			{corev1.ResourceQuotaScopeNotTerminating},
			{corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeBestEffort},
			nil,
		} {
			err := tryChange(ctx, quota.DeepCopy(), func(s *spec) { s.Quota.Scopes = scopes })
			Expect(err).To(MatchError(And(ContainSubstring("spec.quota.scopes: "), ContainSubstring("field is immutable"))), "%v", scopes)
			Expect(apierrors.IsInvalid(err)).To(BeTrue())
		}
	})

	It("is refused in a dry run too", func(ctx SpecContext) {
		quota := newTeam().quota().Hard("pods", "1500m").Obj()
		Expect(api.Create(ctx, quota, client.DryRunAll)).To(MatchError(ContainSubstring("must be an integer")))
	})
})

func selecting(scope corev1.ResourceQuotaScope, operator corev1.ScopeSelectorOperator, values ...string) func(*spec) {
	return func(s *spec) {
		s.Quota.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{ScopeName: scope, Operator: operator, Values: values},
		}}
	}
}
