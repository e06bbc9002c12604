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

	for key, reservation := range d.state.Reservations {
		if !behind(reservation.Resource.GroupResource()) && count.Seen(reservation) {
			d.settleReservation(key, reservation, waiting)
		}
	}
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
func (d *Draft) settleReservation(key Key, reservation Reservation, waiting map[corev1.ResourceName]bool) {
	left := corev1.ResourceList{}
	for name, amount := range reservation.Amounts {
		if waiting[name] {
			left[name] = amount
		}
	}
	switch {
	case len(left) == 0:
		d.end(key, &d.ends.Settled)
	case len(left) < len(reservation.Amounts):
		reservation.Amounts = left
		d.put(reservation)
		d.changed = true
	}
}

// forgotten marks the version of Namespaces in a ledger whose use is forgotten. No count
// comes as far as that, so none is settled. The bits below it tell two Forgets apart.
const forgotten = 1 << 63

// Forget forgets Used, because objects may have been stored without a request to the operator. Nothing is granted until
// Require sets how far a count must have come to include them, and such a count is settled. Reservations and escrows
// stay. The mark is a number that is used once.
func (d *Draft) Forget(mark uint64) {
	counted := cloneCounted(d.state.Counted)
	counted[Namespaces] = forgotten | mark
	d.state.Used, d.state.Counted, d.state.Joined, d.changed = nil, counted, 0, true
}

// Forgotten returns the mark of the last Forget, if no Require has followed it; otherwise
// zero.
func (s State) Forgotten() uint64 {
	if mark := s.Counted[Namespaces]; mark >= forgotten {
		return mark
	}
	return 0
}

// Unlisted is the version in Counted of a source that can't be listed. No count reaches it, so nothing that
// is counted from this source is granted. All else is.
const Unlisted = 1 << 62

// Unlisted returns the sources that can't be listed, sorted.
func (s State) Unlisted() []schema.GroupResource {
	var sources []schema.GroupResource
	for source, version := range s.Counted {
		if version == Unlisted {
			sources = append(sources, source)
		}
	}
	slices.SortFunc(sources, compareSources)
	return sources
}

func compareSources(a, b schema.GroupResource) int { return cmp.Compare(a.String(), b.String()) }

// Listed sets how far a count must have come of sources that were Unlisted and are listed now.
func (d *Draft) Listed(newest map[schema.GroupResource]uint64) {
	counted := cloneCounted(d.state.Counted)
	for source, version := range newest {
		if counted[source] == Unlisted && version != Unlisted {
			counted[source] = version
			d.state.Counted, d.changed = counted, true
		}
	}
}

// Require sets how far a count must have come before it is settled, after the Forget of that mark. If use was forgotten
// again since, newest may lack objects that were stored meanwhile, and nothing changes.
func (d *Draft) Require(mark uint64, newest map[schema.GroupResource]uint64) {
	if mark == 0 || d.state.Forgotten() != mark {
		return
	}
	counted := cloneCounted(d.state.Counted)
	delete(counted, Namespaces)
	for source, version := range newest {
		counted[source] = max(counted[source], version)
	}
	d.state.Counted, d.changed = counted, true
}

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
	return s.Quota == basis.Quota && s.Digest == basis.Digest && s.Forgotten() == 0
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
		if included := s.Counted[source]; version < included && included < Unlisted {
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
		return !listed || version < d.state.Counted[source]
	}
	all := late(Namespaces)
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
	counted := cloneCounted(d.state.Counted)
	for source, version := range count.Counted {
		if source == Namespaces {
			version = max(counted[source], count.Touched[source])
		}
		if !behind(source) {
			counted[source] = version
		}
	}
	if !behind(Namespaces) {
		d.changed = dropUncounted(counted, count) || d.changed
	}
	d.state.Counted = counted
}

// dropUncounted removes the sources that the count doesn't have any more. So the ledger lists only sources of its
// count.
func dropUncounted(counted map[schema.GroupResource]uint64, count Observation) bool {
	before := len(counted)
	maps.DeleteFunc(counted, func(source schema.GroupResource, _ uint64) bool {
		for _, sources := range count.Sources {
			if slices.Contains(sources, source) {
				return false
			}
		}
		return source != Namespaces
	})
	return len(counted) < before
}

func sortedNames(list corev1.ResourceList) []corev1.ResourceName {
	names := quota.ResourceNames(list)
	slices.Sort(names)
	return names
}
