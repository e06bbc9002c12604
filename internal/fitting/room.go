// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package fitting

import (
	"sort"

	corev1 "k8s.io/api/core/v1"
)

// Room is how far one limit lets one workload come.
type Room struct {
	// Wanted is how many pods there are in the end if nothing is short, and Fit
	// how many of them there can be with the rest of the quota. Present pods
	// count.
	Wanted, Fit int64
	// Never has each resource of which the wanted pods together take more than the limit, with that amount: deletions
	// wouldn't help. If it makes no pods at once, it is the cost of all of it.
	Never corev1.ResourceList
}

// Room returns how far a limit lets a demand come. Resources that are not counted limit nothing here.
func (f *Fitter) Room(demand Demand, limit Limit) (Room, error) {
	demand, _ = f.completed(demand)
	fixed, perPod, err := f.chargeItems(demand, &limit)
	if err != nil {
		return Room{}, err
	}
	if demand.Pods == nil {
		return Room{Never: above(fixed, limit.Spec.Hard)}, nil
	}
	pods := demand.Pods
	fresh, _, err := f.chargeNew(demand, &limit)
	if err != nil {
		return Room{}, err
	}
	old, err := f.chargeOld(demand, &limit)
	if err != nil {
		return Room{}, err
	}
	var freed corev1.ResourceList
	for i, amounts := range old {
		freed = sum(freed, timesAll(amounts, pods.Old[i].Count))
	}
	most := &room{pods: pods, fixed: fixed, fresh: fresh, freed: freed, perPod: perPod, left: limit.Left}
	found := Room{Wanted: pods.Wanted, Fit: most.fit()}
	if pods.Either == nil {
		found.Never = above(timesAll(sum(fresh, perPod.each()), pods.Wanted), limit.Spec.Hard)
	}
	return found, nil
}

// above returns the amounts that are more than the limit.
func above(amounts, hard corev1.ResourceList) corev1.ResourceList {
	never := corev1.ResourceList{}
	for name, amount := range amounts {
		if limit, limited := hard[name]; limited && amount.Cmp(limit) > 0 {
			never[name] = amount
		}
	}
	return never
}

// charged is the cost of one item, and its number.
type charged struct {
	amounts corev1.ResourceList
	missing int64
}

// perPod is the additional need of each wanted pod, if it isn't there yet.
type perPod []charged

func (p perPod) each() corev1.ResourceList {
	total := corev1.ResourceList{}
	for _, item := range p {
		total = sum(total, item.amounts)
	}
	return total
}

// chargeItems returns the cost of the items: of the ones that there are for any number of pods, and of the rest.
func (f *Fitter) chargeItems(demand Demand, limit *Limit) (fixed corev1.ResourceList, each perPod, err error) {
	fixed = corev1.ResourceList{}
	for _, item := range demand.Items {
		if item.When == AsPodsEnd { // Pods that are made before don't wait for it.
			continue
		}
		amounts, _, err := f.charge(item, limit)
		if err != nil {
			return nil, nil, err
		}
		if item.EachPod {
			each = append(each, charged{amounts, item.Count})
			continue
		}
		fixed = sum(fixed, timesAll(amounts, item.Count))
	}
	return fixed, each, nil
}

// room has the facts that decide how many pods fit.
type room struct {
	pods                      *Pods
	fixed, fresh, freed, left corev1.ResourceList
	perPod                    perPod
}

// fit returns how many pods there can be in the end: at least the present ones.
func (r *room) fit() int64 {
	wanted := max(0, r.pods.Wanted)
	there := min(wanted, r.pods.Present+r.pods.Replaced())
	missing := wanted - there
	// The more pods, the more they take: the first number that doesn't fit is looked for.
	number := sort.Search(int(missing), func(more int) bool { return !r.fits(there + int64(more) + 1) })
	return there + int64(number)
}

// fits reports whether so many pods fit in the end.
func (r *room) fits(count int64) bool {
	names := sum(r.fixed, r.fresh, r.perPod.each())
	for name := range names {
		left, counted := r.left[name]
		if need := r.need(name, count); counted && need.created && need.last.Cmp(left) > 0 {
			return false
		}
	}
	return true
}

// need returns the amount that so many pods take in the end and that isn't taken
// yet.
func (r *room) need(name corev1.ResourceName, count int64) moments {
	steps := rollout{wanted: count, present: r.pods.Present}
	need := taking(times(r.fresh[name], steps.added(count)))
	if need.created {
		need.last.Sub(r.freed[name])
	}
	need = need.plus(taking(r.fixed[name]))
	for _, item := range r.perPod {
		need = need.plus(taking(times(item.amounts[name], max(0, item.missing-(r.pods.Wanted-count)))))
	}
	return need
}
