/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package ledger

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// Observation is one snapshot of a count. All its parts are of the same instant.
type Observation struct {
	// Basis is what was counted for.
	Basis
	// Used is the count, for each limited resource.
	Used corev1.ResourceList
	// Sources are what each limited resource is counted from.
	// resource name -> resources whose objects use it
	Sources map[corev1.ResourceName][]schema.GroupResource
	// Counted is how far the count has come, for what has been listed at
	// least once.
	Counted map[schema.GroupResource]uint64
	// Everything is what every source depends on, such as the namespaces.
	Everything []schema.GroupResource
	// Seen tells whether the count includes the reservation's object in a
	// version that settles it, or knows the object to be gone.
	Seen func(Reservation) bool
}

// Settle replaces what is used by a newer count and, with it, removes the
// reservations of the objects that the count includes.
//
// A source that the count has not listed yet, or has followed less far than
// the ledger, is left as it was: an older view would take back what a newer
// one has counted, and a settled charge would be lost.
func (d *Draft) Settle(count Observation) {
	if count.Quota == d.state.Quota && count.Generation < d.state.Generation {
		return
	}
	behind := d.behind(count)
	used, waiting := d.settledUse(count, behind)
	if d.state.Basis != count.Basis || !quota.Equals(used, d.state.Used) {
		d.changed = true
	}
	d.advance(count, behind)
	d.state.Basis, d.state.Used = count.Basis, used

	for key, reservation := range d.state.Reservations {
		if !behind(reservation.Resource.GroupResource()) && !usesAny(reservation, waiting) && count.Seen(reservation) {
			d.end(key, &d.ends.Settled)
		}
	}
}

// Recount forgets what is used: objects may have been stored without anybody being
// asked about them. Until the next count is settled nothing is granted. What is in
// flight stays.
func (d *Draft) Recount() {
	d.changed = d.changed || d.state.Used != nil
	d.state.Used = nil
}

// MakesRoom tells whether to settle by the count lets in what didn't fit before:
// less is charged of something, it was counted for another spec, or something wasn't
// counted at all.
func (s State) MakesRoom(count Observation) bool {
	draft := Edit(s)
	before := draft.Charged()
	draft.Settle(count)
	grown, _ := quota.LessThanOrEqual(before, draft.Charged())
	return !grown || draft.state.Basis != s.Basis || len(draft.state.Used) > len(s.Used)
}

// usesAny tells whether the reservation charges one of the resources. Where
// what is used of it waits for another source, nothing else covers the charge.
func usesAny(reservation Reservation, resources map[corev1.ResourceName]bool) bool {
	for name := range reservation.Amounts {
		if resources[name] {
			return true
		}
	}
	return false
}

// behind returns which sources of the count must not be used. How far they were
// followed holds whatever quota they were counted for.
func (d *Draft) behind(count Observation) func(schema.GroupResource) bool {
	late := func(source schema.GroupResource) bool {
		version, listed := count.Counted[source]
		return !listed || version < d.state.Counted[source]
	}
	all := slices.ContainsFunc(count.Everything, late)
	return func(source schema.GroupResource) bool {
		return all || late(source)
	}
}

// settledUse returns what is used by the count, and of which resources the
// count was not taken because a source is behind.
func (d *Draft) settledUse(
	count Observation, behind func(schema.GroupResource) bool,
) (used corev1.ResourceList, waiting map[corev1.ResourceName]bool) {
	used, waiting = corev1.ResourceList{}, map[corev1.ResourceName]bool{}
	sameBasis := d.state.Quota == count.Quota && d.state.Digest == count.Digest
	for name, sources := range count.Sources {
		quantity, known := count.Used[name]
		if slices.ContainsFunc(sources, behind) {
			quantity, known = d.state.Used[name]
			known = known && sameBasis
			waiting[name] = true
		}
		if known {
			used[name] = quantity
		}
	}
	return used, waiting
}

// advance records how far the count has come, without a write of its own:
// what a count includes beyond Used matters only once Used changes.
func (d *Draft) advance(count Observation, behind func(schema.GroupResource) bool) {
	counted := cloneCounted(d.state.Counted)
	for source, version := range count.Counted {
		if !behind(source) {
			counted[source] = version
		}
	}
	d.state.Counted = counted
}

func sortedNames(list corev1.ResourceList) []corev1.ResourceName {
	names := quota.ResourceNames(list)
	slices.Sort(names)
	return names
}
