// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
)

// fromQuotas explains which of all quotas cover the namespace, and returns those.
func fromQuotas(namespace *corev1.Namespace, all *quotav1.ClusterResourceQuotaList) (render.Explanation, runtime.Object, error) {
	explanation := render.Explanation{Namespace: namespace.Name, Labels: namespace.Labels}
	found := &quotav1.ClusterResourceQuotaList{}
	for i := range all.Items {
		quota := &all.Items[i]
		match, err := reading.MatchSelector(quota.Spec.Selector, namespace.Labels, namespace.Annotations)
		switch {
		case err != nil:
			return explanation, nil, fmt.Errorf("quota %s: %w", quota.Name, err)
		case match.Covered:
			explanation.Coverages = append(explanation.Coverages, coverageBy(quota, namespace.Name, match))
			found.Items = append(found.Items, *quota)
		case match.NearMiss():
			miss := match.Unmet[0]
			explanation.NearMisses = append(explanation.NearMisses, render.NearMiss{Quota: quota.Name, Wants: miss.Text, Has: miss.Has})
		}
	}
	setKinds(found)
	return explanation, found, nil
}

func coverageBy(quota *quotav1.ClusterResourceQuota, namespace string, match reading.Match) render.Coverage {
	coverage := render.Coverage{
		Quota:         quota.Name,
		Scopes:        quota.Spec.Quota.Scopes,
		ScopeSelector: quota.Spec.Quota.ScopeSelector,
		Figures:       render.OfQuota(quota),
		Notes:         notes(quota),
	}
	for _, met := range match.Met {
		coverage.By = append(coverage.By, met.Text)
	}
	for _, slice := range quota.Status.Namespaces {
		if slice.Namespace == namespace {
			coverage.Here = slice.Status.Used
		}
	}
	return coverage
}

// notes tell why the figures may not be all.
func notes(quota *quotav1.ClusterResourceQuota) []string {
	var notes []string
	for _, condition := range []string{quotav1.ConditionReady, quotav1.ConditionEnforced} {
		current := meta.FindStatusCondition(quota.Status.Conditions, condition)
		switch {
		case current == nil:
			notes = append(notes, fmt.Sprintf("Its condition %s isn't there yet: is the operator running?", condition))
		case current.Status != "True":
			notes = append(notes, fmt.Sprintf("It is not %s (%s): %s", condition, current.Reason, current.Message))
		}
	}
	return notes
}
