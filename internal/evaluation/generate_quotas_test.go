// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"pgregory.net/rapid"
)

// limitableNames are names that the generated objects use, and some others.
func limitableNames() []corev1.ResourceName {
	names := []corev1.ResourceName{
		"vndr.example/gpu", "storage", "count/events", "count/widgets.example.com", "replicationcontrollers",
		"requests.deviceclass.resource.kubernetes.io/gpu", "requests.vndr.example/gpu", "count/secrets",
		"nic.deviceclass.resource.k8s.io/devices", "silver.storageclass.storage.k8s.io/requests.storage",
		"count/pods", "count/services", "count/persistentvolumeclaims", "count/resourceclaims.resource.k8s.io",
	}
	for _, rows := range []map[string]row{computeRows(), storageRows(), limitRows()} {
		for _, row := range rows {
			names = append(names, row.limited)
		}
	}
	return sortedNames(names)
}

func allScopes() []corev1.ResourceQuotaScope {
	return []corev1.ResourceQuotaScope{
		corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating,
		corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort,
		corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeCrossNamespacePodAffinity,
		corev1.ResourceQuotaScopeVolumeAttributesClass,
	}
}

func scopeSelector(scope corev1.ResourceQuotaScope, operator corev1.ScopeSelectorOperator, values ...string) *corev1.ScopeSelector {
	return &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
		{ScopeName: scope, Operator: operator, Values: values},
	}}
}

func anyScopeExpression() *rapid.Generator[corev1.ScopedResourceSelectorRequirement] {
	return rapid.Custom(func(t *rapid.T) corev1.ScopedResourceSelectorRequirement {
		expression := corev1.ScopedResourceSelectorRequirement{
			ScopeName: rapid.SampledFrom(allScopes()).Draw(t, "scope"),
			Operator: rapid.SampledFrom([]corev1.ScopeSelectorOperator{
				corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn,
				corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist,
			}).Draw(t, "operator"),
		}
		if expression.Operator == corev1.ScopeSelectorOpIn || expression.Operator == corev1.ScopeSelectorOpNotIn {
			expression.Values = rapid.SliceOfN(rapid.SampledFrom([]string{"high", "low", "gold", "silver"}), 1, 2).Draw(t, "values")
		}
		return expression
	})
}

func anyScopedSpec() *rapid.Generator[corev1.ResourceQuotaSpec] {
	return rapid.Custom(func(t *rapid.T) corev1.ResourceQuotaSpec {
		spec := corev1.ResourceQuotaSpec{}
		if chance(t, 6, "with scopes") {
			spec.Scopes = rapid.SliceOfN(rapid.SampledFrom(allScopes()), 1, 2).Draw(t, "scopes")
		}
		if chance(t, 6, "with a selector") {
			spec.ScopeSelector = &corev1.ScopeSelector{
				MatchExpressions: rapid.SliceOfN(anyScopeExpression(), 0, 2).Draw(t, "expressions"),
			}
		}
		return spec
	})
}

// namesFor returns the names that objects of a resource can use, and some others.
func namesFor(resource schema.GroupResource) []corev1.ResourceName {
	others := names("count/events", "count/jobs.batch", "replicationcontrollers")
	evaluator := newTestEvaluators().evaluator(resource)
	if evaluator == nil {
		return others
	}
	return append(others, evaluator.MatchingResources(limitableNames())...)
}

// anyQuota draws quotas on these names that are often small and sometimes
// boundless.
func anyQuota(from []corev1.ResourceName) *rapid.Generator[Quota] {
	return rapid.Custom(func(t *rapid.T) Quota {
		spec := anyScopedSpec().Draw(t, "spec")
		spec.Hard = corev1.ResourceList{}
		for _, name := range rapid.SliceOfN(rapid.SampledFrom(from), 1, 6).Draw(t, "limited") {
			spec.Hard[name] = resource.MustParse(rapid.SampledFrom([]string{"0", "9", "64Gi", "1e40", "1e40"}).Draw(t, "hard"))
		}
		return Quota{Name: rapid.StringMatching(`[a-z]{3}`).Draw(t, "name"), Spec: spec}
	})
}

// anyRequest draws creates, updates and resizes. The old object of an update is
// another object of the same resource.
func anyRequest() *rapid.Generator[admission.Attributes] {
	return rapid.Custom(func(t *rapid.T) admission.Attributes {
		typed := anyTyped().Draw(t, "object")
		if !chance(t, 3, "update") {
			return creation(typed.resource, typed.object)
		}
		switch old := typed.object.(type) {
		case *corev1.Pod:
			if rapid.Bool().Draw(t, "resize") {
				return resize(anyPod().Draw(t, "resized"), old)
			}
			return update(pods(), anyPod().Draw(t, "updated"), old)
		case *corev1.Service:
			return update(services(), anyService().Draw(t, "updated"), old)
		case *corev1.PersistentVolumeClaim:
			return update(volumeClaims(), anyVolumeClaim().Draw(t, "updated"), old)
		}
		return update(typed.resource, typed.object, typed.object.DeepCopyObject())
	})
}

// tally counts the outcomes of generated cases, so that a property can't hold
// for want of cases.
type tally map[string]int

func (c tally) require(t *testing.T, least int, outcomes ...string) {
	t.Helper()
	t.Logf("outcomes: %v", c)
	for _, outcome := range outcomes {
		if c[outcome] < least && !testing.Short() {
			t.Errorf("want at least %d cases of %q, got %d", least, outcome, c[outcome])
		}
	}
}
