// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// Observation is one snapshot of a count. All its parts are of the same instant.
type Observation struct {
	// Basis is the quota and the spec that the count was made for.
	Basis
	// Hard is the limit that was counted for, for each limited resource. Advisory: it refuses nothing.
	Hard     corev1.ResourceList
	Advisory bool
	// Used is the count, for each limited resource.
	Used corev1.ResourceList
	// Sources are the resources that each limited resource is counted from.
	// resource name -> resources whose objects use it
	Sources map[corev1.ResourceName][]schema.GroupResource
	// Counted is the version that the count has reached, for each source that was
	// listed at least once.
	Counted map[schema.GroupResource]uint64
	// Touched is, for each source and for Namespaces, the newest version that
	// changed the count. An older view of the source counts something else, even
	// if the sums are equal. It is at most Counted.
	Touched map[schema.GroupResource]uint64
	// Joined is the newest version in which a namespace came under the quota, or may have left it and come back: no
	// older count has its objects. It is at most the Touched of Namespaces.
	Joined uint64
	// Members is the resourceVersion up to which the count has every namespace that joined.
	Members uint64
	// Seen reports whether the count includes the reservation's object in a
	// version that settles it, or knows the object to be gone.
	Seen func(Reservation) bool
}

// Settle replaces Used by a newer count and removes the reservations of the objects that the count includes.
//
// It skips a source that the count has not listed, or has followed less far than the ledger, because an older view
// would undo a newer count, and a settled charge would be lost. Reservations keep the amounts of such a
// source. If namespaces only left, those that stayed use at most the ledger's Used, so that holds. But if namespaces
// joined, their use of such a source is unknown. Then nothing that is counted from it is granted until a count has come
// so far.
//
// How far the count has come is stored with it if an older view could count something else. Otherwise that
// alone is no reason for a write.
func (d *Draft) Settle(count Observation) {
	if count.Quota == d.state.Quota && count.Generation < d.state.Generation {
		return
	}
	behind := d.behind(count)
	used, waiting := d.settledUse(count, behind)
	if d.state.Basis != count.Basis || !quota.Equals(used, d.state.Used) || d.touched(count, behind) {
		d.changed = true
	}
	if d.state.Fence.Generation != 0 && d.state.Fence.Generation <= count.Generation && d.state.Quota == count.Quota {
		d.state.Fence, d.changed = Fence{Until: d.state.Fence.Until}, true
	}
	d.admitMembers(count, behind)
	d.advance(count, behind)
	d.state.Basis, d.state.Used = count.Basis, used

	for _, reservation := range d.state.Reservations {
		if !behind(reservation.Resource.GroupResource()) && count.Seen(reservation) {
			d.settleReservation(reservation, waiting)
		}
	}
	d.endSurge(count.Hard)
}

// admitMembers records up to where all that joined is counted. If the count is of another basis, or was forgotten,
// nothing of the earlier record holds.
func (d *Draft) admitMembers(count Observation, behind func(schema.GroupResource) bool) {
	if behind(Namespaces) {
		return
	}
	if d.state.Quota != count.Quota || d.state.Digest != count.Digest || len(d.state.Used) == 0 {
		d.state.Joined = 0
	}
	d.state.Joined = max(d.state.Joined, count.Members)
	if d.state.Asked != 0 && d.state.Asked <= d.state.Joined {
		d.state.Asked, d.changed = 0, true
	}
}

// settleReservation removes the amounts of a reservation whose object was
// counted, except amounts that are counted from other sources.
func (d *Draft) settleReservation(reservation Reservation, waiting map[corev1.ResourceName]bool) {
	switch left := waitingFor(reservation.Amounts, waiting); {
	case len(left) == 0:
		d.end(reservation.Key(), &d.ends.Settled)
	case len(left) < len(reservation.Amounts):
		reservation.Amounts = left
		d.put(reservation)
		d.changed = true
	}
}

// waitingFor returns the amounts of resources that wait for a count.
func waitingFor(amounts corev1.ResourceList, waiting map[corev1.ResourceName]bool) corev1.ResourceList {
	left := corev1.ResourceList{}
	for name, amount := range amounts {
		if waiting[name] {
			left[name] = amount
		}
	}
	return left
}

// Forget forgets Used. Nothing is granted until Require sets how far a count must have come to include the objects that
// may have been stored without a request, and such a count is settled. Reservations and escrows stay.
func (d *Draft) Forget(mark Forgotten) {
	counted := cloned(d.state.Counted)
	delete(counted, Namespaces)
	d.state.Used, d.state.Counted, d.state.Joined, d.state.Forgotten, d.changed = nil, counted, 0, mark, true
}

// Newest is the result of live lists.
type Newest struct {
	// Versions are how far a count must have come to include all objects that were stored.
	// resource -> resourceVersion
	Versions map[schema.GroupResource]uint64
	// Unlisted are the resources that couldn't be listed.
	Unlisted sets.Set[schema.GroupResource]
}

// Require sets how far a count must have come before it is settled, after the Forget of that mark. If use was forgotten
// again since, newest may lack objects that were stored meanwhile, and nothing changes.
func (d *Draft) Require(mark Forgotten, newest Newest) {
	if mark == 0 || d.state.Forgotten != mark {
		return
	}
	d.state.Forgotten, d.changed = 0, true
	d.list(newest.Versions, func(schema.GroupResource) bool { return true })
	d.state.Unlisted = d.state.Unlisted.Union(newest.Unlisted)
	maps.DeleteFunc(d.state.Counted, func(source schema.GroupResource, _ uint64) bool { return d.state.Unlisted.Has(source) })
}

// Listed sets how far a count must have come of sources that were Unlisted and are listed now.
func (d *Draft) Listed(newest Newest) {
	if d.state.Unlisted.HasAny(slices.Collect(maps.Keys(newest.Versions))...) {
		d.list(newest.Versions, d.state.Unlisted.Has)
		d.changed = true
	}
}

// list sets how far a count must have come of some sources that are listed.
func (d *Draft) list(newest map[schema.GroupResource]uint64, which func(schema.GroupResource) bool) {
	counted, unlisted := cloned(d.state.Counted), d.state.Unlisted.Clone()
	for source, version := range newest {
		if which(source) {
			counted[source] = max(counted[source], version)
			unlisted.Delete(source)
		}
	}
	d.state.Counted, d.state.Unlisted = counted, unlisted
}

func compareSources(a, b schema.GroupResource) int { return cmp.Compare(a.String(), b.String()) }

// Weight describes the effect of a settle, and whether anything waits for it.
type Weight struct {
	// Changes: the settle changes something.
	Changes bool
	// Waits: it may wait for other changes to share a write with, because it leaves used + reserved as it is: then
	// every charge is judged alike before and after. It may not if a quota that is not counted, or a namespace that
	// joined, waits for it.
	Waits bool
	// Far: only sums change, and at least a quarter of every limit is free before and after. So only a charge for more
	// than that could tell the difference. If nothing is refused, no charge waits for room.
	Far bool
	// Frees: it frees something, and charges may wait for that.
	Frees bool
	// Blank: nothing that the quota limits is counted, before or after. If it enforces its limits, nothing is granted in either
	// case; otherwise Blank is false.
	Blank bool
}

// Weigh returns the weight of a settle by the count.
func (s State) Weigh(count Observation) Weight {
	draft := Edit(s)
	before := draft.Charged()
	draft.Settle(count)
	after := draft.Charged()
	rises, _ := quota.LessThanOrEqual(before, after)
	unasked := draft.state.Asked == s.Asked
	return Weight{
		Changes: draft.Changed(),
		Waits: unasked && quota.Equals(before, after) && draft.state.Basis == s.Basis &&
			len(draft.state.Used) == len(s.Used) && draft.state.Counted[Namespaces] == s.Counted[Namespaces],
		Far:   unasked && !s.Unsettles(draft.state) && (count.Advisory || isFar(before, count.Hard) && isFar(after, count.Hard)),
		Frees: !rises,
		Blank: !count.Advisory && s.Fence.Generation == 0 && len(s.Used)+len(draft.state.Used) == 0 && len(count.Sources) > 0,
	}
}

// farParts: a limit is far while at least one part in so many of it is free.
const farParts = 4

func isFar(charged, hard corev1.ResourceList) bool {
	for name, limit := range hard {
		free := limit.DeepCopy()
		free.Sub(charged[name])
		free.Mul(farParts)
		if free.Cmp(limit) < 0 || limit.IsZero() {
			return false
		}
	}
	return len(hard) > 0
}

// HasCounted reports whether the ledger has a count for this basis that includes a change of membership.
func (s State) HasCounted(basis Basis, version uint64) bool {
	return s.isFor(basis) && version <= s.Counted[Namespaces]
}

// HasJoined reports whether the ledger has a count for this basis with all that a namespace brought that joined.
func (s State) HasJoined(basis Basis, version uint64) bool {
	return s.isFor(basis) && version <= s.Members()
}

func (s State) isFor(basis Basis) bool {
	return s.Quota == basis.Quota && s.Digest == basis.Digest && s.Forgotten == 0
}

// IsAhead reports whether the ledger has counted more of some source than the count, so
// that a settle leaves that as it is.
func (s State) IsAhead(count Observation) bool {
	behind := (&Draft{state: s}).behind(count)
	if behind(Namespaces) {
		return true
	}
	for _, sources := range count.Sources {
		if slices.ContainsFunc(sources, behind) {
			return true
		}
	}
	return false
}

// Untaken returns why a settle leaves out something that the count has listed; nil if it takes all of that. A ledger that
// comes from another history takes nothing for good.
func (s State) Untaken(count Observation) error {
	if count.Quota == s.Quota && count.Generation < s.Generation {
		return fmt.Errorf("it is of generation %d of the quota, and generation %d was counted", s.Generation, count.Generation)
	}
	var behind []schema.GroupResource
	for source, version := range count.Counted {
		if included := s.Counted[source]; version < included {
			behind = append(behind, source)
		}
	}
	if len(behind) == 0 {
		return nil
	}
	first := slices.MinFunc(behind, compareSources)
	return fmt.Errorf("it includes %s up to resourceVersion %d, and they were counted up to %d",
		first.String(), s.Counted[first], count.Counted[first])
}

// behind returns a function that reports whether a source of the count must not
// be used. The versions that it reached hold for every quota.
func (d *Draft) behind(count Observation) func(schema.GroupResource) bool {
	late := func(source schema.GroupResource) bool {
		version, listed := count.Counted[source]
		return !listed || d.state.Unlisted.Has(source) || version < d.state.Counted[source]
	}
	all := d.state.Forgotten != 0 || late(Namespaces)
	return func(source schema.GroupResource) bool {
		return all || late(source)
	}
}

// touched reports whether the count includes a change that the ledger has not
// counted.
func (d *Draft) touched(count Observation, behind func(schema.GroupResource) bool) bool {
	for source, version := range count.Touched {
		if version > d.state.Counted[source] && !behind(source) {
			return true
		}
	}
	return false
}

// settledUse returns the use by the count, and the resources that were not taken
// because a source is behind.
func (d *Draft) settledUse(
	count Observation, behind func(schema.GroupResource) bool,
) (used corev1.ResourceList, waiting map[corev1.ResourceName]bool) {
	used, waiting = corev1.ResourceList{}, map[corev1.ResourceName]bool{}
	holds := d.state.Quota == count.Quota && d.state.Digest == count.Digest &&
		(behind(Namespaces) || count.Joined <= d.state.Members())
	for name, sources := range count.Sources {
		quantity, known := count.Used[name]
		if slices.ContainsFunc(sources, behind) {
			quantity, known = d.state.Used[name]
			known = known && holds
			waiting[name] = true
		}
		if known {
			used[name] = quantity
		}
	}
	return used, waiting
}

// advance records how far the count has come.
func (d *Draft) advance(count Observation, behind func(schema.GroupResource) bool) {
	counted := cloned(d.state.Counted)
	for source, version := range count.Counted {
		if source == Namespaces {
			version = max(counted[source], count.Touched[source])
		}
		if !behind(source) {
			counted[source] = version
		}
	}
	if !behind(Namespaces) {
		d.dropUncounted(counted, count)
	}
	d.state.Counted = counted
}

// dropUncounted removes the sources that the count doesn't have any more. So the ledger lists only sources of its
// count.
func (d *Draft) dropUncounted(counted map[schema.GroupResource]uint64, count Observation) {
	sources := sets.New(Namespaces)
	for _, of := range count.Sources {
		sources.Insert(of...)
	}
	before := len(counted) + len(d.state.Unlisted)
	maps.DeleteFunc(counted, func(source schema.GroupResource, _ uint64) bool { return !sources.Has(source) })
	d.state.Unlisted = d.state.Unlisted.Intersection(sources)
	d.changed = d.changed || len(counted)+len(d.state.Unlisted) < before
}

func sortedNames(list corev1.ResourceList) []corev1.ResourceName {
	names := quota.ResourceNames(list)
	slices.Sort(names)
	return names
}
