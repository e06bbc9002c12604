// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package fitting

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

func lesser(a, b resource.Quantity) resource.Quantity {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

func greater(a, b resource.Quantity) resource.Quantity {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}

func times(quantity resource.Quantity, count int64) resource.Quantity {
	product := quantity.DeepCopy()
	product.Mul(count)
	return product
}

func less(a, b resource.Quantity) resource.Quantity {
	difference := a.DeepCopy()
	difference.Sub(b)
	return difference
}

func timesAll(list corev1.ResourceList, count int64) corev1.ResourceList {
	products := make(corev1.ResourceList, len(list))
	for name, quantity := range list {
		products[name] = times(quantity, count)
	}
	return products
}

// moments are amounts of one resource that must be free, at different moments.
type moments struct {
	// last: in the end.
	last resource.Quantity
	// most: at the worst moment on the way, if every step is as small as it can
	// be. Without it the end isn't reached.
	most resource.Quantity
	// whole: at the worst moment, if a rollout has its whole surge.
	whole resource.Quantity
}

func (m moments) plus(other moments) moments {
	m.last.Add(other.last)
	m.most.Add(other.most)
	m.whole.Add(other.whole)
	return m
}

func (m moments) plusAlways(quantity resource.Quantity) moments {
	return m.plus(moments{last: quantity, most: quantity, whole: quantity})
}

// neverBelowZero: what is freed in all is not counted on for anything else.
func (m moments) neverBelowZero() moments {
	zero := resource.Quantity{}
	return moments{last: greater(m.last, zero), most: greater(m.most, zero), whole: greater(m.whole, zero)}
}

// rollout is how many pods there are of each sort.
type rollout struct{ wanted, present, surge, unavailable, grows int64 }

// replaced is pods that each free the same of a resource when they go.
type replaced struct {
	each  resource.Quantity
	count int64
	// unknown: nobody knows what they free, so they are counted as freeing nothing.
	unknown bool
}

// need returns what must be free of a resource to come from the pods that there
// are to those that are wanted. A new pod takes what fresh says, and old says what
// the pods free that are replaced.
//
// While some old pods are left, as few new ones are needed as leave no more than
// unavailable missing, and one old one more can go. With the whole surge there
// are as many as may be. Which old pods go first isn't known: those that free
// least, at worst.
//
// Of the old ones, as many more as grows are made first.
func (r rollout) need(fresh resource.Quantity, old []replaced) moments {
	first := r.largest(fresh, old)
	if r.grows > 0 {
		old = append(slices.Clone(old), replaced{each: first, count: r.grows})
	}
	sorted := slices.SortedFunc(slices.Values(old), func(a, b replaced) int { return a.each.Cmp(b.each) })
	left := int64(0)
	for _, group := range sorted {
		left += group.count
	}
	result, freed := moments{}, resource.Quantity{}
	for _, group := range sorted {
		for _, gone := range r.turns(left, group.count) {
			free := freed.DeepCopy()
			free.Add(times(group.each, gone))
			least := r.wanted - r.unavailable + 1 - (left - gone)
			result.most = greater(result.most, less(times(fresh, r.added(least)), free))
			result.whole = greater(result.whole, less(times(fresh, r.added(r.wanted+r.surge-(left-gone))), free))
		}
		freed.Add(times(group.each, group.count))
		left -= group.count
	}
	result.last = less(times(fresh, r.added(r.wanted)), freed)
	result.most = greater(result.most, result.last)
	result.whole = greater(result.whole, result.most)
	return result.plusAlways(times(first, r.grows)).neverBelowZero()
}

// largest returns the most that one of the old pods takes. One of which nobody knows it is
// taken to need what a new one does.
func (rollout) largest(fresh resource.Quantity, old []replaced) resource.Quantity {
	most := resource.Quantity{}
	for _, group := range old {
		switch {
		case group.count == 0:
		case group.unknown:
			most = greater(most, fresh)
		default:
			most = greater(most, group.each)
		}
	}
	return most
}

// turns returns after how many pods of a group the need may be greatest, while so many are left
// before the first of them goes. What a group frees grows evenly, and so does what new pods
// take until as many are made as are wanted. So the need is greatest at the ends, or where new
// pods begin or end to be made.
func (r rollout) turns(left, count int64) []int64 {
	if count <= 0 {
		return nil
	}
	turns := make([]int64, 0, 6)
	turns = append(turns, 0, count-1)
	for _, start := range [...]int64{r.wanted - r.unavailable + 1 - left, r.wanted + r.surge - left} {
		for _, turn := range [...]int64{r.present - start, r.wanted - start} {
			if 0 < turn && turn < count {
				turns = append(turns, turn)
			}
		}
	}
	slices.SortFunc(turns, cmp.Compare[int64])
	return slices.Compact(turns)
}

// added returns how many pods must be made until there are so many new ones.
func (r rollout) added(count int64) int64 {
	return max(0, min(count, r.wanted)-r.present)
}

// sum of what is limited, each a number of times.
func sum(amounts ...corev1.ResourceList) corev1.ResourceList {
	total := corev1.ResourceList{}
	for _, list := range amounts {
		total = quota.Add(total, list)
	}
	return total
}
