// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package fitting

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"

	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
)

// Fitter compares demands with limits. It is made by NewFitter, and is for one goroutine.
type Fitter struct {
	evaluators *evaluation.Evaluators
	complete   Complete
}

// NewFitter makes a fitter that charges the objects, as completed by complete,
// with these evaluators. It completes each object once, however often it is asked
// about it.
func NewFitter(evaluators *evaluation.Evaluators, complete Complete) *Fitter {
	return &Fitter{evaluators: evaluators, complete: once(complete)}
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
		if limit.Admits == "" {
			verdict.Refusals = merged(verdict.Refusals, refusals)
		}
		verdict.Rows = append(verdict.Rows, rows(limit, total)...)
	}
	return verdict, nil
}

// total returns the need of all demands together for the resources that a quota
// limits.
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

// need returns the need of one demand for the resources that a quota limits.
func (f *Fitter) need(demand Demand, limit *Limit) (map[corev1.ResourceName]moments, []Refusal, error) {
	fixed, refusals, err := f.chargeAll(demand, demand.Items, limit)
	if err != nil || demand.Pods == nil {
		return always(fixed), refusals, err
	}
	pods := demand.Pods
	if !pods.makes() {
		return always(fixed), refusals, nil
	}
	fresh, refused, err := f.chargeNew(demand, limit)
	if err != nil {
		return nil, nil, err
	}
	old, err := f.chargeOld(demand, limit)
	if err != nil {
		return nil, nil, err
	}
	need := withPods(fixed, pods, fresh, old)
	if limit.Surge != nil && pods.Replaced() > 0 && pods.Unavailable == 0 && pods.grows() {
		for name, amount := range need {
			need[name] = amount.growing()
		}
	}
	return need, append(refusals, refused...), nil
}

// chargeNew returns the cost of one new pod for a quota: the greater of its
// alternatives.
func (f *Fitter) chargeNew(demand Demand, limit *Limit) (corev1.ResourceList, []Refusal, error) {
	fresh, refusals, err := f.chargeAll(demand, demand.Pods.New, limit)
	if err != nil || demand.Pods.Either == nil {
		return fresh, refusals, err
	}
	either, refused, err := f.chargeAll(demand, demand.Pods.Either, limit)
	return quota.Max(fresh, either), merged(refusals, refused), err
}

// Touches reports whether a quota is charged for the new pods of a demand.
func (f *Fitter) Touches(demand Demand, limit Limit) (bool, error) {
	if demand.Pods == nil {
		return false, nil
	}
	completed, _ := f.completed(demand)
	fresh, _, err := f.chargeNew(completed, &limit)
	return len(fresh) > 0, err
}

// chargeOld returns the cost for a quota of one replaced pod of each group.
func (f *Fitter) chargeOld(demand Demand, limit *Limit) ([]corev1.ResourceList, error) {
	old := make([]corev1.ResourceList, 0, len(demand.Pods.Old))
	present := *limit
	present.Admits = "they are there already" // So it counts them, though it may refuse such pods by now.
	for _, group := range demand.Pods.Old {
		amounts, _, err := f.chargeAll(demand, group.Items, &present)
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
		need[name] = taking(quantity)
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

// limited returns the resources that new pods take, and also the old pods' if
// there may be more of them.
func (p *Pods) limited(fresh corev1.ResourceList, old []corev1.ResourceList) []corev1.ResourceName {
	if p.Grows > 0 {
		fresh = sum(append([]corev1.ResourceList{fresh}, old...)...)
	}
	return quota.ResourceNames(fresh)
}

// frees returns the amount of a resource that goes with each group of old pods.
func (p *Pods) frees(old []corev1.ResourceList, name corev1.ResourceName) []replaced {
	frees := make([]replaced, 0, len(old))
	for i, amounts := range old {
		frees = append(frees, replaced{each: amounts[name], count: p.Old[i].Count, unknown: p.Old[i].Items == nil})
	}
	return frees
}
