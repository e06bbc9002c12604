// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

// ByPriority reports whether a limit goes by the priority classes of pods.
func ByPriority(limit fitting.Limit) bool {
	if slices.Contains(limit.Spec.Scopes, corev1.ResourceQuotaScopePriorityClass) {
		return true
	}
	return limit.Spec.ScopeSelector != nil && slices.ContainsFunc(limit.Spec.ScopeSelector.MatchExpressions,
		func(requirement corev1.ScopedResourceSelectorRequirement) bool {
			return requirement.ScopeName == corev1.ResourceQuotaScopePriorityClass
		})
}

// ByStorageClass reports whether a limit is of one storage class alone.
func ByStorageClass(limit fitting.Limit) bool {
	for name := range limit.Spec.Hard {
		if strings.Contains(string(name), ".storageclass.storage.k8s.io/") {
			return true
		}
	}
	return false
}
