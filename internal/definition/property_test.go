// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// anySet draws a few labels or annotations, so that selectors often match.
func anySet(least int) *rapid.Generator[map[string]string] {
	return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c"}), rapid.SampledFrom([]string{"", "1", "2"}), least, 3)
}

func anyRequirement() *rapid.Generator[metav1.LabelSelectorRequirement] {
	return rapid.Custom(func(t *rapid.T) metav1.LabelSelectorRequirement {
		key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")
		operator := rapid.SampledFrom([]metav1.LabelSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist"}).Draw(t, "operator")
		if operator == "Exists" || operator == "DoesNotExist" {
			return requirement(key, operator)
		}
		return requirement(key, operator, rapid.SliceOfN(rapid.SampledFrom([]string{"", "1", "2"}), 1, 2).Draw(t, "values")...)
	})
}

func anySelector() *rapid.Generator[quotav1.ClusterResourceQuotaSelector] {
	return rapid.Custom(func(t *rapid.T) quotav1.ClusterResourceQuotaSelector {
		expressions := rapid.SliceOfN(anyRequirement(), 0, 3).Draw(t, "expressions")
		selector := byLabels(anySet(0).Draw(t, "labels"), expressions...)
		if rapid.Bool().Draw(t, "with annotations") {
			selector.AnnotationSelector = anySet(1).Draw(t, "annotations")
		}
		return selector
	}).Filter(func(selector quotav1.ClusterResourceQuotaSelector) bool { return !isEmpty(selector) })
}

// holds is the meaning of a requirement, in the plainest words.
func holds(requirement metav1.LabelSelectorRequirement, set map[string]string) bool {
	value, found := set[requirement.Key]
	switch requirement.Operator {
	case "In":
		return found && slices.Contains(requirement.Values, value)
	case "NotIn":
		return !found || !slices.Contains(requirement.Values, value)
	case "Exists":
		return found
	default:
		return !found
	}
}

// selects is the meaning of a selector, in the plainest words.
func selects(selector quotav1.ClusterResourceQuotaSelector, namespaceLabels, annotations map[string]string) bool {
	requirements := slices.Clone(selector.LabelSelector.MatchExpressions)
	for key, value := range selector.LabelSelector.MatchLabels {
		requirements = append(requirements, requirement(key, "In", value))
	}
	for _, requirement := range requirements {
		if !holds(requirement, namespaceLabels) {
			return false
		}
	}
	for key, value := range selector.AnnotationSelector {
		if !holds(requirement(key, "In", value), annotations) {
			return false
		}
	}
	return true
}

// A selector matches as if it was read again for each namespace.
func TestSelectorsMatchAsBruteForceDoes(t *testing.T) {
	outcomes := map[bool]int{} // matches -> cases
	rapid.Check(t, func(t *rapid.T) {
		selector := anySelector().Draw(t, "selector")
		compiled := mustSelect(t, selector)
		for range 10 {
			namespaceLabels, annotations := anySet(0).Draw(t, "labels"), anySet(0).Draw(t, "annotations")
			want := selects(selector, namespaceLabels, annotations)
			if got := compiled.Matches(namespaceLabels, annotations); got != want {
				t.Fatalf("%s on %v %v: want %t, got %t", compiled, namespaceLabels, annotations, want, got)
			}
			outcomes[want]++
		}
	})
	if outcomes[true] == 0 || outcomes[false] == 0 {
		t.Errorf("want cases that match and that don't, got %v", outcomes)
	}
}

// The string of a selector doesn't depend on the order that it is written in, and
// has the same meaning for kubectl.
func TestStringsMeanWhatTheirSelectorsMean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		selector := anySelector().Draw(t, "selector")
		selector.AnnotationSelector = nil
		if isEmpty(selector) {
			return
		}
		compiled := mustSelect(t, selector)
		reordered := *selector.LabelSelector.DeepCopy()
		reordered.MatchExpressions = rapid.Permutation(reordered.MatchExpressions).Draw(t, "order")
		if got := mustSelect(t, quotav1.ClusterResourceQuotaSelector{LabelSelector: &reordered}).String(); got != compiled.String() {
			t.Fatalf("in another order %q, not %q", got, compiled)
		}
		parsed, err := labels.Parse(compiled.String())
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			namespaceLabels := anySet(0).Draw(t, fmt.Sprint("labels ", i))
			if parsed.Matches(labels.Set(namespaceLabels)) != compiled.Matches(namespaceLabels, nil) {
				t.Fatalf("%q means something else for %v", compiled, namespaceLabels)
			}
		}
	})
}
