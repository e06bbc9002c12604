// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package builders

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// QuotaBuilder builds a ClusterResourceQuota.
type QuotaBuilder struct{ quota quotav1.ClusterResourceQuota }

// Quota starts a quota that limits nothing and selects nothing.
func Quota(name string) *QuotaBuilder {
	return &QuotaBuilder{quota: quotav1.ClusterResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name}}}
}

// Obj returns the quota.
func (b *QuotaBuilder) Obj() *quotav1.ClusterResourceQuota { return &b.quota }

// Label selects the namespaces with this label, among those selected so far.
func (b *QuotaBuilder) Label(key, value string) *QuotaBuilder {
	selector := b.labels()
	if selector.MatchLabels == nil {
		selector.MatchLabels = map[string]string{}
	}
	selector.MatchLabels[key] = value
	return b
}

// LabelIn selects the namespaces whose label has one of the values.
func (b *QuotaBuilder) LabelIn(key string, values ...string) *QuotaBuilder {
	selector := b.labels()
	selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
		Key: key, Operator: metav1.LabelSelectorOpIn, Values: values,
	})
	return b
}

// Annotation selects the namespaces with this annotation.
func (b *QuotaBuilder) Annotation(key, value string) *QuotaBuilder {
	if b.quota.Spec.Selector.AnnotationSelector == nil {
		b.quota.Spec.Selector.AnnotationSelector = map[string]string{}
	}
	b.quota.Spec.Selector.AnnotationSelector[key] = value
	return b
}

// Hard limits a resource.
func (b *QuotaBuilder) Hard(name corev1.ResourceName, quantity string) *QuotaBuilder {
	if b.quota.Spec.Quota.Hard == nil {
		b.quota.Spec.Quota.Hard = corev1.ResourceList{}
	}
	b.quota.Spec.Quota.Hard[name] = resource.MustParse(quantity)
	return b
}

// Surge gives pods that replace others room above a limit.
func (b *QuotaBuilder) Surge(name corev1.ResourceName, quantity string) *QuotaBuilder {
	if b.quota.Spec.Surge.Hard == nil {
		b.quota.Spec.Surge.Hard = corev1.ResourceList{}
	}
	b.quota.Spec.Surge.Hard[name] = resource.MustParse(quantity)
	return b
}

// Scopes restricts the quota to what matches each of the scopes.
func (b *QuotaBuilder) Scopes(scopes ...corev1.ResourceQuotaScope) *QuotaBuilder {
	b.quota.Spec.Quota.Scopes = append(b.quota.Spec.Quota.Scopes, scopes...)
	return b
}

// ScopeSelector restricts the quota to what matches the expression.
func (b *QuotaBuilder) ScopeSelector(
	scope corev1.ResourceQuotaScope, operator corev1.ScopeSelectorOperator, values ...string,
) *QuotaBuilder {
	if b.quota.Spec.Quota.ScopeSelector == nil {
		b.quota.Spec.Quota.ScopeSelector = &corev1.ScopeSelector{}
	}
	selector := b.quota.Spec.Quota.ScopeSelector
	selector.MatchExpressions = append(selector.MatchExpressions, corev1.ScopedResourceSelectorRequirement{
		ScopeName: scope, Operator: operator, Values: values,
	})
	return b
}

func (b *QuotaBuilder) labels() *metav1.LabelSelector {
	if b.quota.Spec.Selector.LabelSelector == nil {
		b.quota.Spec.Selector.LabelSelector = &metav1.LabelSelector{}
	}
	return b.quota.Spec.Selector.LabelSelector
}

// Enforcement says what is done with requests that don't fit, and while nobody can decide.
func (b *QuotaBuilder) Enforcement(mode quotav1.EnforcementMode, unavailable quotav1.UnavailablePolicy) *QuotaBuilder {
	b.quota.Spec.Enforcement.Mode, b.quota.Spec.Enforcement.WhenUnavailable = mode, unavailable
	return b
}
