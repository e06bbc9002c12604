// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"errors"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// convertResourcePool converts Capsule's ResourcePool
// (github.com/projectcapsule/capsule, api/v1beta2/resourcepool_types.go).
func convertResourcePool(object *Object, _ string, outcome *Outcome) error {
	if err := convertSelectors(object, outcome, "selectors"); err != nil {
		return err
	}
	outcome.remark(poolClaims)
	return nil
}

// convertGlobalResourceQuota converts Capsule's GlobalResourceQuota
// (github.com/projectcapsule/capsule, api/v1beta2/globalresourcequota_types.go).
func convertGlobalResourceQuota(object *Object, _ string, outcome *Outcome) error {
	return convertSelectors(object, outcome, "namespaceSelectors")
}

// convertSelectors converts what has a spec.quota, and selects the namespaces
// that match any of several selectors.
func convertSelectors(object *Object, outcome *Outcome, field string) error {
	quota, err := object.described(object.metadata("name"))
	if err != nil {
		return err
	}
	var selectors []metav1.LabelSelector
	if err := object.take(&selectors, "spec", field); err != nil {
		return err
	}
	selector, err := anyOf(selectors)
	if err != nil {
		return err
	}
	if err := object.take(&quota.Spec.Quota, "spec", "quota"); err != nil {
		return err
	}
	quota.Spec.Selector = quotav1.ClusterResourceQuotaSelector{LabelSelector: &selector}
	if len(selectors) > 1 {
		outcome.remark(selectorsMerged)
	}
	outcome.add(quota)
	return nil
}

// anyOf returns a selector of the namespaces that match any of these. The
// requirements of one selector are ANDed, so that is possible only where they
// differ in the values of a single label.
func anyOf(selectors []metav1.LabelSelector) (metav1.LabelSelector, error) {
	isEmpty := func(s metav1.LabelSelector) bool { return len(s.MatchLabels)+len(s.MatchExpressions) == 0 }
	switch {
	case len(selectors) == 0:
		return metav1.LabelSelector{}, errors.New(noSelector)
	case slices.ContainsFunc(selectors, isEmpty):
		return metav1.LabelSelector{}, errors.New(emptySelector)
	case len(selectors) == 1:
		return selectors[0], nil
	}
	merged, plain := valuesOf(selectors[0])
	varies := map[string]bool{}
	for _, selector := range selectors[1:] {
		values, alsoPlain := valuesOf(selector)
		if !plain || !alsoPlain || !slices.Equal(keys(merged), keys(values)) {
			return metav1.LabelSelector{}, errors.New(severalSelectors)
		}
		for key := range values {
			if !slices.Equal(values[key], merged[key]) {
				varies[key] = true
				merged[key] = sorted(slices.Concat(merged[key], values[key]))
			}
		}
	}
	if len(varies) > 1 {
		return metav1.LabelSelector{}, errors.New(severalSelectors)
	}
	return withValues(merged), nil
}

func keys(values map[string][]string) []string { return slices.Sorted(maps.Keys(values)) }

// valuesOf returns the values that a selector allows for each label, if it says
// nothing else.
func valuesOf(selector metav1.LabelSelector) (values map[string][]string, plain bool) {
	values = map[string][]string{}
	for key, value := range selector.MatchLabels {
		values[key] = []string{value}
	}
	for _, requirement := range selector.MatchExpressions {
		_, twice := values[requirement.Key]
		if twice || requirement.Operator != metav1.LabelSelectorOpIn || len(requirement.Values) == 0 {
			return nil, false
		}
		values[requirement.Key] = sorted(slices.Clone(requirement.Values))
	}
	return values, true
}

func withValues(values map[string][]string) metav1.LabelSelector {
	selector := metav1.LabelSelector{}
	for _, key := range keys(values) {
		selector.MatchExpressions = append(selector.MatchExpressions,
			metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: values[key]})
	}
	return selector
}

func sorted(values []string) []string {
	slices.Sort(values)
	return slices.Compact(values)
}
