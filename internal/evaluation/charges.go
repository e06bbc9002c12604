// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// Charge is the amount that a request adds to one quota: only names that the
// quota limits, and only amounts above zero.
type Charge struct {
	Quota   string
	Amounts corev1.ResourceList
	// Missing are resources of an advisory quota of which the object doesn't say how much it asks for, sorted. Incomplete
	// says so in the words of a Refusal; empty if there are none.
	Missing    []corev1.ResourceName
	Incomplete string
}

// Refusal is the error of a request that a quota refuses because of the object as such, independently of its use, or
// that no quota covers.
//
//nolint:errname // It is named like the other outcomes of a request; the error is only how it travels.
type Refusal struct {
	// Message is in the words of Kubernetes, as in
	// "failed quota: team: must specify limits.cpu for: c1".
	Message string
	// Quota is the quota that refuses it; empty if it is refused for want of one.
	Quota string
	// Uncovered: the request consumes a resource that is limited by default, and
	// none of the quotas covers that. Another one might.
	Uncovered bool
}

// Error implements error.
func (r *Refusal) Error() string { return r.Message }

// Charges returns the amounts that the request adds to each of the quotas, sorted by the quotas' names; quotas that it
// doesn't charge, and that miss nothing, are left out. The error is a *Refusal if a quota refuses the object as such,
// or if its consumption takes a quota and none of these covers it. Any other error means that the charge is not known.
func (e *Evaluators) Charges(a admission.Attributes, quotas []Quota) ([]Charge, error) {
	if len(quotas) == 0 && len(e.limited) == 0 {
		return nil, nil
	}
	evaluator, err := e.charging(a)
	if evaluator == nil || err != nil {
		return nil, err
	}
	return e.chargesByUpstream(countedAttributes(resizeAttributes(a)), evaluator, quotas)
}

// chargesByUpstream lets Kubernetes charge the request to unused quotas, so the
// use afterwards is the charge.
//
// The check ends at the first quota that refuses the object. Sorted quotas make
// it always the same one. All quotas are checked at once, because any of them may
// cover a resource that is limited by default.
func (e *Evaluators) chargesByUpstream(a admission.Attributes, evaluator quota.Evaluator, quotas []Quota) ([]Charge, error) {
	measured, err := measure(evaluator, a.GetObject())
	if err != nil {
		return nil, fmt.Errorf("measuring %s: %w", a.GetResource().GroupResource(), err)
	}
	sorted := slices.SortedFunc(slices.Values(quotas), func(x, y Quota) int { return cmp.Compare(x.Name, y.Name) })
	unused := make([]corev1.ResourceQuota, 0, len(sorted))
	for _, quota := range sorted {
		unused = append(unused, unusedQuota(quota, measured.usage))
		if quota.Advisory {
			measured.advise(quota.Name)
		}
	}
	if err := e.checkLimitedScopes(a, measured); err != nil {
		return nil, err
	}
	charged, err := resourcequota.CheckRequest(unused, a, measured, e.limited)
	if err == nil {
		return measured.chargesOf(charged), nil
	}
	if e.isUncovered(unused, a, measured) {
		return nil, &Refusal{Message: reason(a, err), Uncovered: true}
	}
	return nil, refusalOrFailure(a, err)
}

// checkLimitedScopes returns an error where the scopes that are limited by
// default can't be matched with the object. Upstream passes over that error, and
// with it over all quotas.
func (e *Evaluators) checkLimitedScopes(a admission.Attributes, evaluator quota.Evaluator) error {
	for _, limited := range e.limited {
		if _, err := evaluator.MatchingScopes(a.GetObject(), limited.MatchScopes); err != nil {
			return fmt.Errorf("matching what is limited by default with %s: %w", a.GetResource().GroupResource(), err)
		}
	}
	return nil
}

// isUncovered reports whether a request that failed does so only for want of a
// quota: without limits by default it wouldn't. Upstream's errors don't tell. One
// of the two isn't even a refusal by its type.
func (e *Evaluators) isUncovered(quotas []corev1.ResourceQuota, a admission.Attributes, evaluator quota.Evaluator) bool {
	if len(e.limited) == 0 {
		return false
	}
	_, err := resourcequota.CheckRequest(quotas, a, evaluator, nil)
	return err == nil
}

// unusedQuota returns the quota with nothing used of it. The limit is the
// object's whole use: no charge can be more, so nothing is ever exceeded. A fixed
// large number would not do, since quantities have no largest value.
func unusedQuota(q Quota, usage corev1.ResourceList) corev1.ResourceQuota {
	hard := make(corev1.ResourceList, len(q.Spec.Hard))
	used := make(corev1.ResourceList, len(q.Spec.Hard))
	for name := range q.Spec.Hard {
		hard[name] = usage[name]
		used[name] = resource.Quantity{Format: resource.DecimalSI}
	}
	unused := corev1.ResourceQuota{
		Spec:   corev1.ResourceQuotaSpec{Scopes: q.Spec.Scopes, ScopeSelector: q.Spec.ScopeSelector},
		Status: corev1.ResourceQuotaStatus{Hard: hard, Used: used},
	}
	unused.Name = q.Name
	return unused
}

// measuredEvaluator is an evaluator that has already measured one object.
type measuredEvaluator struct {
	quota.Evaluator
	object runtime.Object
	usage  corev1.ResourceList

	// name of an advisory quota -> its advice
	advices map[string]*advice
	// matching is the quota that was matched last.
	matching string
}

func (m *measuredEvaluator) chargesOf(charged []corev1.ResourceQuota) []Charge {
	var charges []Charge
	for i := range charged {
		charge := Charge{Quota: charged[i].Name, Amounts: quota.RemoveZeros(charged[i].Status.Used)}
		if advice, ok := m.advices[charge.Quota]; ok {
			charge.Missing, charge.Incomplete = advice.missing, advice.incomplete
		}
		if len(charge.Amounts) > 0 || charge.Incomplete != "" {
			charges = append(charges, charge)
		}
	}
	return charges
}

// refusalOrFailure distinguishes a quota's refusal from a failure to judge.
func refusalOrFailure(a admission.Attributes, err error) error {
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("charging %s: %w", a.GetResource().GroupResource(), err)
	}
	message := reason(a, err)
	return &Refusal{Message: message, Quota: refusedBy(message)}
}

// refusedBy reads the quota's name, which has no colon, from upstream's message.
func refusedBy(message string) string {
	named, ok := strings.CutPrefix(message, "failed quota: ")
	name, _, whole := strings.Cut(named, ": ")
	if !ok || !whole {
		return ""
	}
	return name
}

// reason leaves out upstream's prefix, which must appear once only.
func reason(a admission.Attributes, err error) string {
	prefix := admission.NewForbidden(a, errors.New("")).Error()
	return strings.TrimPrefix(err.Error(), prefix)
}

// advice is a quota's comment on an object that it doesn't refuse.
type advice struct {
	missing    []corev1.ResourceName
	incomplete string
}

func (m *measuredEvaluator) advise(quota string) {
	if m.advices == nil {
		m.advices = map[string]*advice{}
	}
	m.advices[quota] = &advice{}
}

// Matches implements quota.Evaluator. Upstream matches a quota before it asks for the constraints of its resources.
func (m *measuredEvaluator) Matches(q *corev1.ResourceQuota, item runtime.Object) (bool, error) {
	m.matching = q.Name
	return m.Evaluator.Matches(q, item)
}

// Constraints implements quota.Evaluator. The demands of an advisory quota are
// noted.
func (m *measuredEvaluator) Constraints(required []corev1.ResourceName, item runtime.Object) error {
	err := m.Evaluator.Constraints(required, item)
	advice, ok := m.advices[m.matching]
	if !ok || err == nil {
		return err
	}
	advice.missing = slices.DeleteFunc(slices.Sorted(slices.Values(required)), func(name corev1.ResourceName) bool {
		return m.Evaluator.Constraints([]corev1.ResourceName{name}, item) == nil
	})
	advice.incomplete = fmt.Sprintf("failed quota: %s: %v", m.matching, err)
	return nil
}

func measure(evaluator quota.Evaluator, object runtime.Object) (*measuredEvaluator, error) {
	usage, err := evaluator.Usage(object)
	return &measuredEvaluator{Evaluator: evaluator, object: object, usage: usage}, err
}

// Usage implements quota.Evaluator.
func (m *measuredEvaluator) Usage(object runtime.Object) (corev1.ResourceList, error) {
	if object == m.object {
		return m.usage, nil
	}
	return m.Evaluator.Usage(object)
}
