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

func more(a, b resource.Quantity) resource.Quantity {
	total := a.DeepCopy()
	total.Add(b)
	return total
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

// moments are amounts of one resource that must be free, at different moments. They are below zero if more is freed
// before. So they can be compared with the rest of a quota that is over its limit: it refuses even a pod that takes
// less than was freed.
type moments struct {
	// created: something that takes of the resource is created. If not, nothing must be free, and
	// the rest is zero.
	created bool
	// last: in the end.
	last resource.Quantity
	// most: at the worst moment on the way, if every step is as small as it can
	// be. Without it the end isn't reached.
	most resource.Quantity
	// plain: at the worst moment on the way at which a pod is created that replaces none, or another object. Only the
	// others may take the surge of a quota.
	plain peak
	// grows: the pods are larger than the ones that they replace, so that they get no surge.
	grows bool
	// whole: at the worst moment, if a rollout has its whole surge.
	whole resource.Quantity
}

// taking returns the moments of an object that takes so much, and frees nothing.
func taking(quantity resource.Quantity) moments {
	if quantity.Sign() <= 0 {
		return moments{}
	}
	made := moments{created: true, last: quantity.DeepCopy(), most: quantity.DeepCopy(), whole: quantity.DeepCopy()}
	made.plain.tell(quantity)
	return made
}

// plus adds up objects that are created independently of each other: the room that one frees is not counted on for the
// other.
func (m moments) plus(other moments) moments {
	switch {
	case !m.created:
		return other
	case !other.created:
		return m
	}
	m, other = m.neverBelowZero(), other.neverBelowZero()
	both := moments{
		created: true, last: more(m.last, other.last), most: more(m.most, other.most), whole: more(m.whole, other.whole),
		grows: m.grows || other.grows,
	}
	if m.plain.told {
		both.plain.tell(more(m.plain.amount, other.most))
	}
	if other.plain.told {
		both.plain.tell(more(other.plain.amount, m.most))
	}
	return both
}

func (m moments) neverBelowZero() moments {
	zero := resource.Quantity{}
	m.last, m.most, m.whole = greater(m.last, zero), greater(m.most, zero), greater(m.whole, zero)
	m.plain.amount = greater(m.plain.amount, zero)
	return m
}

// short returns the amount that is missing, never below zero, and the reason why surge doesn't help. So much is available, and
// so much surge does the quota have. If less than nothing is available, others have taken so much of it. A pod that replaces
// another one may take the rest of the surge. In the end none is needed, because no pod takes more than the one that it replaces.
func (m moments) short(available, surge resource.Quantity) (missing resource.Quantity, why Surge) {
	replacing, plain := less(m.most, more(available, surge)), resource.Quantity{}
	if m.plain.told {
		plain = less(m.plain.amount, available)
	}
	missing = greater(greater(replacing, plain), resource.Quantity{})
	taken := greater(less(resource.Quantity{}, available), resource.Quantity{})
	switch {
	case surge.Sign() > 0 && m.grows && !missing.IsZero():
		return missing, SurgeGrows
	case surge.Sign() <= 0 || plain.Sign() > 0 || missing.IsZero():
		return missing, SurgeNone
	case replacing.Cmp(taken) > 0:
		return missing, SurgeTooSmall
	default:
		return missing, SurgeTaken
	}
}

// peak is the greatest of the amounts that it was told of.
type peak struct {
	told   bool
	amount resource.Quantity
}

func (p *peak) tell(amount resource.Quantity) {
	if !p.told || amount.Cmp(p.amount) > 0 {
		p.told, p.amount = true, amount.DeepCopy()
	}
}

// rollout is how many pods there are of each sort.
type rollout struct{ wanted, present, surge, unavailable, grows int64 }

// replaced is pods that each free the same of a resource when they go.
type replaced struct {
	each  resource.Quantity
	count int64
	// unknown: the amounts that they free aren't known, so they are counted as
	// freeing nothing.
	unknown bool
}

// need returns the amount of a resource that must be free to come from the
// present pods to the wanted ones. fresh is the cost of a new pod, and old the
// amounts that replaced pods free.
//
// While some old pods are left, as few new ones are needed as leave no more than
// unavailable missing, and one old one more can go. With the whole surge there
// are as many as may be. The order of the old pods isn't known: at worst, the
// pods that free least go first.
//
// Only moments count at which something has been created: deletions are never
// refused.
//
// Of the old ones, as many more as grows are made first.
//
// A new pod replaces another one if with it there are more than wanted. As long as some are missing, the first new ones
// replace none. After that, new ones replace others, unless an old one goes first.
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
	taken := times(first, r.grows) // less the amount that has been freed
	most, whole, plain := peak{}, peak{}, peak{}
	if taken.Sign() > 0 {
		most.tell(taken)
		plain.tell(taken)
	}
	create := func(at *peak, count int64, taken resource.Quantity) {
		if created := times(fresh, r.added(count)); created.Sign() > 0 {
			at.tell(more(created, taken))
		}
	}
	create(&plain, r.wanted-left, taken)
	for _, group := range sorted {
		for _, gone := range r.turns(left, group.count) {
			now := less(taken, times(group.each, gone))
			create(&most, r.wanted-r.unavailable+1-(left-gone), now)
			create(&whole, r.wanted+r.surge-(left-gone), now)
		}
		taken = less(taken, times(group.each, group.count))
		left -= group.count
	}
	create(&most, r.wanted, taken)
	if !most.told {
		return moments{}
	}
	whole.tell(most.amount)
	if r.unavailable > 0 {
		plain = most
	}
	last := more(taken, times(fresh, r.added(r.wanted)))
	return moments{created: true, last: last, most: most.amount, plain: plain, whole: whole.amount}
}

// largest returns the most that one of the old pods takes. A pod of unknown cost
// counts like a new one.
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

// turns returns after how many pods of a group the need may be greatest, while so many are left before the first of
// them goes. The amount that a group frees grows evenly, and so does the cost of new pods until all wanted ones are
// made. So the need is greatest at the ends, or as the first new pod or the last one is made.
func (r rollout) turns(left, count int64) []int64 {
	if count <= 0 {
		return nil
	}
	turns := make([]int64, 0, 6)
	turns = append(turns, 0, count-1)
	for _, start := range [...]int64{r.wanted - r.unavailable + 1 - left, r.wanted + r.surge - left} {
		for _, turn := range [...]int64{r.present + 1 - start, r.wanted - start} {
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

// sum adds up limited amounts, each a number of times.
func sum(amounts ...corev1.ResourceList) corev1.ResourceList {
	total := corev1.ResourceList{}
	for _, list := range amounts {
		total = quota.Add(total, list)
	}
	return total
}
