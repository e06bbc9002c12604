// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package fitting

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	quota "k8s.io/apiserver/pkg/quota/v1"

	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
)

// Outcome is the answer.
type Outcome string

// The answers, from best to worst.
const (
	Fits    Outcome = "fits"
	Unknown Outcome = "unknown"
	DoesNot Outcome = "does not fit"
)

// Row is what is asked of one resource of a quota.
type Row struct {
	Limit    *Limit
	Resource corev1.ResourceName
	// Requested must be free at some moment, or not all comes to be.
	Requested resource.Quantity
	// InTheEnd is what is taken when all is done.
	InTheEnd resource.Quantity
	// WholeSurge is what rollouts would take for a while if they could.
	WholeSurge resource.Quantity
	// Counted: how much is left is known.
	Counted bool
	// Available may be below zero, where more is used than is allowed.
	Available resource.Quantity
	// Shortfall is what is missing of Requested, never below zero.
	Shortfall resource.Quantity
}

// Refusal is an object that is refused whatever is left.
type Refusal struct {
	// Kind, Namespace and Name of the manifest that asks for it.
	Kind, Namespace, Name string
	// Refused is the kind of the refused object.
	Refused string
	Message string
}

// Verdict is whether everything fits, and why.
type Verdict struct {
	// Rows of all that is asked for and limited, by limit and resource.
	Rows []Row
	// Refusals, each told once.
	Refusals []Refusal
}

// Outcome returns the answer: what surely doesn't fit outweighs what isn't known.
func (v Verdict) Outcome() Outcome {
	outcome := Fits
	for _, row := range v.Rows {
		switch {
		case !row.Shortfall.IsZero():
			return DoesNot
		case !row.Counted:
			outcome = Unknown
		}
	}
	if len(v.Refusals) > 0 {
		return DoesNot
	}
	return outcome
}

// Fitter compares demands with limits. It is made by NewFitter.
type Fitter struct {
	evaluators *evaluation.Evaluators
	complete   Complete
}

// NewFitter makes a fitter that charges with these evaluators what complete makes
// of each object.
func NewFitter(evaluators *evaluation.Evaluators, complete Complete) *Fitter {
	return &Fitter{evaluators: evaluators, complete: complete}
}

// Fit reports whether all of the demands fit together.
func (f *Fitter) Fit(demands []Demand, limits []Limit) (Verdict, error) {
	verdict := Verdict{}
	completed := make([]Demand, 0, len(demands))
	for _, demand := range demands {
		demand, refusals := f.completed(demand)
		completed = append(completed, demand)
		verdict.Refusals = merged(verdict.Refusals, refusals)
	}
	for i := range limits {
		limit := &limits[i]
		total, refusals, err := f.total(completed, limit)
		if err != nil {
			return Verdict{}, err
		}
		verdict.Refusals = merged(verdict.Refusals, refusals)
		verdict.Rows = append(verdict.Rows, rows(limit, total)...)
	}
	return verdict, nil
}

// total returns what all demands together need of what a quota limits.
func (f *Fitter) total(demands []Demand, limit *Limit) (map[corev1.ResourceName]moments, []Refusal, error) {
	total := map[corev1.ResourceName]moments{}
	var refusals []Refusal
	for _, demand := range demands {
		if !slices.Contains(limit.Namespaces, demand.Namespace) {
			continue
		}
		need, refused, err := f.need(demand, limit)
		if err != nil {
			return nil, nil, err
		}
		refusals = append(refusals, refused...)
		for name, amount := range need {
			total[name] = total[name].plus(amount)
		}
	}
	return total, refusals, nil
}

// merged tells each refusal once.
func merged(known, refusals []Refusal) []Refusal {
	for _, refusal := range refusals {
		if !slices.Contains(known, refusal) {
			known = append(known, refusal)
		}
	}
	return known
}

// need returns what one demand needs of what a quota limits.
func (f *Fitter) need(demand Demand, limit *Limit) (map[corev1.ResourceName]moments, []Refusal, error) {
	fixed, refusals, err := f.chargeAll(demand, demand.Items, limit)
	if err != nil || demand.Pods == nil {
		return always(fixed), refusals, err
	}
	pods := demand.Pods
	if pods.Missing() == 0 && pods.Replaced() == 0 {
		return always(fixed), refusals, nil
	}
	fresh, refused, err := f.chargeAll(demand, pods.New, limit)
	if err != nil {
		return nil, nil, err
	}
	old, err := f.chargeOld(demand, limit)
	if err != nil {
		return nil, nil, err
	}
	return withPods(fixed, pods, fresh, old), append(refusals, refused...), nil
}

// chargeOld returns what one pod of each group costs a quota that is replaced.
func (f *Fitter) chargeOld(demand Demand, limit *Limit) ([]corev1.ResourceList, error) {
	old := make([]corev1.ResourceList, 0, len(demand.Pods.Old))
	for _, group := range demand.Pods.Old {
		// What is there already was not refused.
		amounts, _, err := f.chargeAll(demand, group.Items, limit)
		if err != nil {
			return nil, err
		}
		old = append(old, amounts)
	}
	return old, nil
}

func always(fixed corev1.ResourceList) map[corev1.ResourceName]moments {
	need := make(map[corev1.ResourceName]moments, len(fixed))
	for name, quantity := range fixed {
		need[name] = moments{}.plusAlways(quantity)
	}
	return need
}

func withPods(
	fixed corev1.ResourceList, pods *Pods, fresh corev1.ResourceList, old []corev1.ResourceList,
) map[corev1.ResourceName]moments {
	need := always(fixed)
	steps := rollout{
		wanted: pods.Wanted, present: pods.Present, surge: pods.Surge, unavailable: pods.Unavailable, grows: pods.Grows,
	}
	for _, name := range pods.limited(fresh, old) {
		need[name] = need[name].plus(steps.need(fresh[name], pods.frees(old, name)))
	}
	return need
}

// limited returns what new pods take, and old ones if there may be more of them.
func (p *Pods) limited(fresh corev1.ResourceList, old []corev1.ResourceList) []corev1.ResourceName {
	if p.Grows > 0 {
		fresh = sum(append([]corev1.ResourceList{fresh}, old...)...)
	}
	return quota.ResourceNames(fresh)
}

// frees returns what goes of a resource with each group of old pods.
func (p *Pods) frees(old []corev1.ResourceList, name corev1.ResourceName) []replaced {
	frees := make([]replaced, 0, len(old))
	for i, amounts := range old {
		frees = append(frees, replaced{each: amounts[name], count: p.Old[i].Count, unknown: p.Old[i].Items == nil})
	}
	return frees
}

func rows(limit *Limit, total map[corev1.ResourceName]moments) []Row {
	var rows []Row
	for _, name := range slices.Sorted(maps.Keys(total)) {
		need := total[name]
		if need.whole.IsZero() {
			continue
		}
		row := Row{Limit: limit, Resource: name, Requested: need.most, InTheEnd: need.last, WholeSurge: need.whole}
		if row.Available, row.Counted = limit.Left[name]; row.Counted && row.Requested.Sign() > 0 {
			row.Shortfall = greater(less(row.Requested, row.Available), resource.Quantity{})
		}
		rows = append(rows, row)
	}
	return rows
}
