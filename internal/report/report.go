// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// Summary returns used and hard of each resource, sorted by name, in the form
// of kubectl get resourcequota: "pods: 3/10, requests.cpu: 300m/2". A resource
// that hasn't been counted shows "?" for used.
func Summary(used, hard corev1.ResourceList) string {
	parts := make([]string, 0, len(hard))
	for _, name := range slices.Sorted(maps.Keys(hard)) {
		limit := hard[name]
		amount := "?"
		if quantity, counted := used[name]; counted {
			amount = quantity.String()
		}
		parts = append(parts, string(name)+": "+amount+"/"+limit.String())
	}
	return strings.Join(parts, ", ")
}

// none is in a column that would be empty otherwise.
const none = "none"

// Amounts returns the amount of each resource, sorted by name, without zeros:
// "pods: 1, requests.cpu: 100m"; "none" if there is nothing at all.
func Amounts(list corev1.ResourceList) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if amount := list[name]; !amount.IsZero() {
			parts = append(parts, string(name)+": "+amount.String())
		}
	}
	return cmp.Or(strings.Join(parts, ", "), none)
}

// Scopes returns the conditions under which an object is limited, as in
// "NotTerminating, PriorityClass in (high,low)"; "none" if everything is limited.
func Scopes(scopes []corev1.ResourceQuotaScope, selector *corev1.ScopeSelector) string {
	var parts []string
	for _, scope := range scopes {
		parts = append(parts, string(scope))
	}
	if selector != nil {
		for _, requirement := range selector.MatchExpressions {
			parts = append(parts, scopeRequirement(requirement))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), none)
}

func scopeRequirement(current corev1.ScopedResourceSelectorRequirement) string {
	name, values := string(current.ScopeName), "("+strings.Join(current.Values, ",")+")"
	switch current.Operator {
	case corev1.ScopeSelectorOpIn:
		return name + " in " + values
	case corev1.ScopeSelectorOpNotIn:
		return name + " notin " + values
	case corev1.ScopeSelectorOpDoesNotExist:
		return "no " + name
	case corev1.ScopeSelectorOpExists:
	}
	return name
}

// Available returns the amounts that can still be created: hard less used and
// reserved, never below zero; only counted resources.
func Available(hard, used, reserved corev1.ResourceList) corev1.ResourceList {
	counted := quota.Mask(hard, quota.ResourceNames(used))
	taken := quota.Mask(quota.Add(used, reserved), quota.ResourceNames(counted))
	return quota.SubtractWithNonNegativeResult(counted, taken)
}
