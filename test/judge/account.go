// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	quota "k8s.io/apiserver/pkg/quota/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// account is what lives under one quota.
type account struct {
	quota    *quotav1.ClusterResourceQuota
	selector labels.Selector
	// terms is the quota as evaluators know it.
	terms *corev1.ResourceQuota
	names []corev1.ResourceName
	// enforced are the limits above which requests are refused.
	enforced corev1.ResourceList

	// Invariant: holds the namespaces that the quota selects, and no other.
	slices map[string]corev1.ResourceList // namespace -> what lives there
	// Invariant: the sum of slices.
	lives    corev1.ResourceList
	peak     corev1.ResourceList
	admitted int
}

// newAccount returns an account without namespaces. With an error it is of a
// quota that selects nothing.
func newAccount(object *quotav1.ClusterResourceQuota) (*account, error) {
	spec := object.Spec.Quota
	selector, err := compile(object.Spec.Selector)
	return &account{
		quota:    object,
		selector: selector,
		terms: &corev1.ResourceQuota{
			Spec:   corev1.ResourceQuotaSpec(spec),
			Status: corev1.ResourceQuotaStatus{Hard: spec.Hard}, // where evaluators read the names
		},
		names:    quota.ResourceNames(spec.Hard),
		enforced: enforced(object.Spec),
		slices:   map[string]corev1.ResourceList{},
		lives:    zeros(spec.Hard),
		peak:     zeros(spec.Hard),
	}, err
}

// enforced returns the limits of a quota whose mode is Deny.
func enforced(spec quotav1.ClusterResourceQuotaSpec) corev1.ResourceList {
	if mode := spec.Enforcement.Mode; mode == quotav1.EnforcementWarn || mode == quotav1.EnforcementAudit {
		return nil
	}
	return spec.Quota.Hard
}

// compile returns the selector of namespaces' labels. Where annotations alone
// select, every label will do.
func compile(selector quotav1.ClusterResourceQuotaSelector) (labels.Selector, error) {
	if selector.LabelSelector == nil && len(selector.AnnotationSelector) > 0 {
		return labels.Everything(), nil
	}
	compiled, err := metav1.LabelSelectorAsSelector(selector.LabelSelector)
	if err != nil {
		return labels.Nothing(), fmt.Errorf("compiling the selector: %w", err)
	}
	return compiled, nil
}

func zeros(hard corev1.ResourceList) corev1.ResourceList {
	return quota.Subtract(hard, hard)
}

// continues tells whether this account holds for another version of its quota.
func (a *account) continues(object *quotav1.ClusterResourceQuota) bool {
	return a.quota.UID == object.UID && apiequality.Semantic.DeepEqual(a.quota.Spec, object.Spec)
}

// inherit takes over what happened under an earlier spec of the same quota.
func (a *account) inherit(earlier *account) {
	if earlier == nil || earlier.quota.UID != a.quota.UID {
		return
	}
	a.peak = quota.Max(a.peak, earlier.peak)
	a.admitted = earlier.admitted
}

func (a *account) selects(object *corev1.Namespace) bool {
	if object == nil || !a.selector.Matches(labels.Set(object.Labels)) {
		return false
	}
	for key, want := range a.quota.Spec.Selector.AnnotationSelector {
		if got, found := object.Annotations[key]; !found || got != want {
			return false
		}
	}
	return true
}

// reconsider takes a namespace in, or leaves it out, as it now is.
func (a *account) reconsider(name string, ns *namespace) error {
	slice, had := a.slices[name]
	switch selected := a.selects(ns.object); {
	case selected && !had:
		return a.takeIn(name, ns)
	case !selected && had:
		a.lives = quota.Subtract(a.lives, slice)
		delete(a.slices, name)
	}
	return nil
}

func (a *account) takeIn(name string, ns *namespace) error {
	slice := zeros(a.terms.Spec.Hard)
	for _, record := range ns.records {
		cost, err := a.cost(record)
		if err != nil {
			return err
		}
		slice = quota.Add(slice, cost)
	}
	a.slices[name] = slice
	a.add(slice)
	return nil
}

func (a *account) add(change corev1.ResourceList) {
	a.lives = quota.Add(a.lives, change)
	a.peak = quota.Max(a.peak, a.lives)
}

func (a *account) covers(namespace string) bool {
	_, selected := a.slices[namespace]
	return selected
}

// replace puts one record in the place of another; nil is none. It returns by
// how much that changes what lives.
func (a *account) replace(namespace string, previous, next *record) (corev1.ResourceList, error) {
	before, errBefore := a.cost(previous)
	after, errAfter := a.cost(next)
	if err := errors.Join(errBefore, errAfter); err != nil {
		return nil, err
	}
	change := quota.Subtract(after, before)
	a.slices[namespace] = quota.Add(a.slices[namespace], change)
	a.add(change)
	return change, nil
}

// cost is what an object uses of this quota.
func (a *account) cost(r *record) (corev1.ResourceList, error) {
	if r == nil {
		return corev1.ResourceList{}, nil
	}
	matches, err := r.evaluator.Matches(a.terms, r.object)
	if err != nil {
		return nil, fmt.Errorf("matching with quota %s: %w", a.quota.Name, err)
	}
	if !matches {
		return corev1.ResourceList{}, nil
	}
	return quota.Mask(r.usage, a.names), nil
}

func (a *account) report() QuotaReport {
	report := QuotaReport{
		Hard:       maps.Clone(a.quota.Spec.Quota.Hard),
		Lives:      maps.Clone(a.lives),
		Namespaces: make(map[string]corev1.ResourceList, len(a.slices)),
		Peak:       maps.Clone(a.peak),
		Admitted:   a.admitted,
	}
	for namespace, slice := range a.slices {
		report.Namespaces[namespace] = maps.Clone(slice)
	}
	return report
}
