// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// Salvage returns the readable parts of a quota that Compile refuses. Such a
// quota can't be counted or charged, so requests that it may limit must be
// refused: otherwise a spec that this release can't compile would limit nothing.
//
// The definition says more than the spec does, never less. It has no scopes, so
// it also concerns objects outside of them. Its selector consists of the valid
// requirements alone, so it may select more namespaces; it selects none if no
// requirement is valid. Invalid is the error. If the quota is valid, Invalid is
// nil, and the definition is the compiled one.
func Salvage(object *quotav1.ClusterResourceQuota) Definition {
	compiled, invalid := Compile(object)
	if invalid == nil {
		return compiled
	}
	// Without a digest the basis is that of no count, as it must be.
	sum, _ := digest(object)
	salvaged := definitionOf(object, sum, salvageSelector(object.Spec.Selector), corev1.ResourceQuotaSpec{Hard: object.Spec.Quota.Hard})
	salvaged.Invalid = invalid
	return salvaged
}

// salvageSelector returns the selector of those requirements that are valid; the
// zero Selector, which selects nothing, if there is none.
func salvageSelector(selector quotav1.ClusterResourceQuotaSelector) Selector {
	byLabels, annotations := metav1.LabelSelector{MatchLabels: map[string]string{}}, map[string]string{}
	if selector.LabelSelector != nil {
		for key, value := range selector.LabelSelector.MatchLabels {
			only := map[string]string{key: value}
			if isValid(quotav1.ClusterResourceQuotaSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: only}}) {
				maps.Copy(byLabels.MatchLabels, only)
			}
		}
		for _, requirement := range selector.LabelSelector.MatchExpressions {
			only := []metav1.LabelSelectorRequirement{requirement}
			if isValid(quotav1.ClusterResourceQuotaSelector{LabelSelector: &metav1.LabelSelector{MatchExpressions: only}}) {
				byLabels.MatchExpressions = append(byLabels.MatchExpressions, requirement)
			}
		}
	}
	for key, value := range selector.AnnotationSelector {
		only := map[string]string{key: value}
		if isValid(quotav1.ClusterResourceQuotaSelector{AnnotationSelector: only}) {
			maps.Copy(annotations, only)
		}
	}
	// Without any requirement Compile refuses it and returns the zero Selector.
	compiled, _ := CompileSelector(quotav1.ClusterResourceQuotaSelector{LabelSelector: &byLabels, AnnotationSelector: annotations})
	return compiled
}

func isValid(selector quotav1.ClusterResourceQuotaSelector) bool {
	_, err := CompileSelector(selector)
	return err == nil
}
