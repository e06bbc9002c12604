// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// Namespaces is the source on which all that is counted depends.
var Namespaces = schema.GroupResource{Resource: "namespaces"}

const (
	// MaxReservations bounds the reservations in one ledger.
	MaxReservations = 5000
	// MaxBytes bounds their size as stored. With the other fields of a ledger,
	// the object stays below 1 MiB; etcd takes 1.5 MiB.
	MaxBytes = 900 << 10
)

// Object identifies an object and where to look it up.
type Object struct {
	Resource  schema.GroupVersionResource
	Namespace string
	Name      string
	UID       types.UID
}

// Reservation is a charge held for one object from its admission until it is
// observed, or found never to come.
type Reservation struct {
	Object
	// From is the resourceVersion that an update started from; empty for a creation. Only a later version of
	// the object settles the reservation.
	From string
	// Attempt is the UID of the AdmissionRequest. Only the attempt itself changes
	// or releases its reservation, even if another attempt claims the object's
	// UID.
	Attempt string
	// Amounts are the amounts that admission charged.
	Amounts corev1.ResourceList
	// Expiry is for people: when the reservation ends by the clock of its writer. See Life.
	Expiry time.Time
	// Doubtful: long after such requests end, a live look didn't find the object.
	Doubtful bool
}

// Key identifies a reservation within a ledger.
type Key struct {
	UID     types.UID
	Attempt string
}

// Key returns the reservation's identity.
func (r Reservation) Key() Key {
	return Key{UID: r.UID, Attempt: r.Attempt}
}

// slot identifies attempts of which at most one can win: a name that can be
// created once, or a version of an object that can be updated once. The attempts
// in a slot are charged as the largest of them.
type slot struct {
	resource        schema.GroupResource
	namespace, name string
	from            string
	// uid is of an object that shares its slot with none of another UID.
	uid types.UID
}

func (r Reservation) slot() slot {
	made := slot{resource: r.Resource.GroupResource(), namespace: r.Namespace, name: r.Name, from: r.From}
	if !isUnmistakable(r.Name) {
		made.uid = r.UID
	}
	return made
}

// isUnmistakable reports whether a name is of the characters of a DNS subdomain.
// The API server stores some objects, such as Roles, under other names too. Names
// that aren't valid UTF-8 become equal once they are JSON.
func isUnmistakable(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '.':
		default:
			return false
		}
	}
	return true
}

// State is a ledger at one instant. It is immutable: change it through a Draft.
type State struct {
	// Basis is the quota and the spec that Used was counted for; zero before the
	// first count.
	Basis
	// Used has the counted amounts. A resource that is missing here has not been
	// counted.
	Used corev1.ResourceList
	// Counted is how far Used includes each resource. For Namespaces it is the newest version at which a
	// namespace joined or left. A charge is judged only if its caller and the ledger know the same of that.
	//
	// resource -> resourceVersion up to which it is included
	Counted map[schema.GroupResource]uint64
	// Joined is the resourceVersion up to which Used has every namespace that joined. It is raised in writes that
	// happen anyway, by each replica that has seen that no namespace joined since. See Members.
	Joined uint64
	// Asked is the version to which a caller has asked to raise Joined; zero if
	// no caller waits for that.
	Asked uint64
	// Reservations are the charges in flight.
	// Key -> reservation
	Reservations map[Key]Reservation
	// Fence has the lowered limits of a spec that is about to be stored; zero for none.
	Fence Fence
	// Sealed isn't zero if nothing is granted, because the ledger may lack requests that were in flight when it was
	// made. It shows people since when that is so, by the clock of its writer.
	Sealed time.Time
	// index is of Reservations; nil if it has to be made first.
	index *index
}

// index has the sums of all reservations, which every batch needs. Made again for
// each batch, it took most of the batch's time.
//
// Invariant: it agrees with the Reservations of the State that it belongs to.
type index struct {
	// slot -> the reservations in it
	slots map[slot][]Key
	// reserved is the sum over all slots, and escrowed that over the slots of escrows.
	reserved, escrowed corev1.ResourceList
	// bytes is the sum of all sizes.
	bytes int
	// doubtful and escrows are how many reservations are so.
	doubtful, escrows int
}

// Members is the resourceVersion up to which Used has every namespace that joined.
func (s State) Members() uint64 { return max(s.Joined, s.Counted[Namespaces]) }

// Indexed returns the same state with its reservations added up, which saves later readers that work.
func (s State) Indexed() State {
	if s.index == nil {
		return Edit(s).State()
	}
	return s
}

// Reserved returns the sum of all reservations.
func (s State) Reserved() corev1.ResourceList {
	if s.index != nil {
		return s.index.reserved.DeepCopy()
	}
	return Edit(s).index.reserved
}

// Draft is a State being changed. It owns its copy: the State that it was made
// from stays as it was.
type Draft struct {
	state   State
	index   *index
	changed bool
	ends    Ends
	// suspects has the amounts of each namespace with doubtful reservations; nil if they must be gathered first.
	suspects map[string]corev1.ResourceList
}

// Ends are how many reservations ended in a draft, and how.
type Ends struct {
	// Settled: the object was observed, or has come and gone.
	Settled int
	// Expired: the object never came.
	Expired int
	// Released: the request was refused after all, or its caller gave up.
	Released int
}

// Edit starts a draft from a state.
func Edit(state State) *Draft {
	draft := &Draft{state: state}
	if state.index != nil {
		draft.state.Reservations = maps.Clone(state.Reservations)
		draft.index = &index{slots: maps.Clone(state.index.slots), reserved: maps.Clone(state.index.reserved),
			escrowed: maps.Clone(state.index.escrowed),
			bytes:    state.index.bytes, doubtful: state.index.doubtful, escrows: state.index.escrows}
		draft.state.index = nil
		return draft
	}
	draft.index = &index{
		slots: make(map[slot][]Key, len(state.Reservations)), reserved: corev1.ResourceList{}, escrowed: corev1.ResourceList{},
	}
	draft.state.Reservations = make(map[Key]Reservation, len(state.Reservations)+1)
	for key, reservation := range state.Reservations {
		slot := reservation.slot()
		draft.index.slots[slot] = append(draft.index.slots[slot], key)
		draft.index.bytes += reservation.size()
		draft.index.doubtful += reservation.doubt()
		draft.index.escrows += reservation.escrow()
		draft.state.Reservations[key] = reservation
	}
	// Once for each slot: a name that is tried again and again has many reservations in one.
	for slot := range draft.index.slots {
		draft.index.recharge(slot, nil, draft.slotAmounts(slot))
	}
	return draft
}

// State returns the changed state. The draft must not be used afterwards.
func (d *Draft) State() State {
	state := d.state
	state.index = d.index
	return state
}

// Peek returns the state as it is now, for a look at all but its reservations. The draft may be used
// afterwards.
func (d *Draft) Peek() State { return d.state }

// Changed reports whether the draft differs from its base in anything that must
// be stored.
func (d *Draft) Changed() bool {
	return d.changed
}

// Ends returns which reservations ended since the draft was started.
func (d *Draft) Ends() Ends {
	return d.ends
}

// Quota returns the UID of the quota that the draft is a ledger of.
func (d *Draft) Quota() types.UID { return d.state.Quota }

// Charged returns the used and reserved amounts, which count against the limits.
func (d *Draft) Charged() corev1.ResourceList {
	return quota.Add(d.state.Used, d.index.reserved)
}

// heldOf returns the used amount and the amount that is reserved for objects. Escrow of replicas is no part of it.
func (d *Draft) heldOf(name corev1.ResourceName) resource.Quantity {
	held := d.chargedOf(name)
	held.Sub(d.index.escrowed[name])
	return held
}

func (d *Draft) put(reservation Reservation) {
	key, slot := reservation.Key(), reservation.slot()
	before := d.slotAmounts(slot)
	if held, known := d.state.Reservations[key]; known && held.slot() != slot {
		d.remove(key) // an attempt never changes its slot; if one did, it would be counted twice
	}
	if !slices.Contains(d.index.slots[slot], key) {
		// Other drafts share the slice.
		d.index.slots[slot] = append(slices.Clip(d.index.slots[slot]), key)
	}
	d.index.bytes += reservation.size() - d.state.Reservations[key].size()
	d.doubtMore(reservation.doubt() - d.state.Reservations[key].doubt())
	d.index.escrows += reservation.escrow() - d.state.Reservations[key].escrow()
	d.state.Reservations[key] = reservation
	d.recharge(slot, before)
}

// end removes a reservation, if there is one, and counts it among the
// reservations that ended in the same way.
func (d *Draft) end(key Key, alike *int) {
	if _, known := d.state.Reservations[key]; known {
		d.remove(key)
		*alike++
	}
}

func (d *Draft) remove(key Key) {
	reservation, known := d.state.Reservations[key]
	if !known {
		return
	}
	slot := reservation.slot()
	before := d.slotAmounts(slot)
	d.index.bytes -= reservation.size()
	d.doubtMore(-reservation.doubt())
	d.index.escrows -= reservation.escrow()
	delete(d.state.Reservations, key)
	d.index.slots[slot] = without(d.index.slots[slot], key)
	if len(d.index.slots[slot]) == 0 {
		delete(d.index.slots, slot)
	}
	d.recharge(slot, before)
	d.changed = true
}

// recharge corrects the running sums when a slot's amounts were others before.
func (d *Draft) recharge(slot slot, before corev1.ResourceList) {
	after := d.slotAmounts(slot)
	d.index.recharge(slot, before, after)
	if held, suspected := d.suspects[slot.namespace]; suspected {
		d.suspects[slot.namespace] = quota.Subtract(quota.Add(held, after), before)
	}
}

// recharge corrects the running sums when one slot's amounts change.
func (i *index) recharge(slot slot, before, after corev1.ResourceList) {
	move(i.reserved, before, after)
	if slot.resource == escrows.GroupResource() {
		move(i.escrowed, before, after)
	}
}

// move corrects a sum of which one part changes. A resource whose sum returns to zero goes, so that an
// empty ledger reserves nothing.
func move(sum, before, after corev1.ResourceList) {
	for name, amount := range before {
		moved := sum[name].DeepCopy()
		moved.Sub(amount)
		sum[name] = moved
	}
	for name, amount := range after {
		moved := sum[name].DeepCopy()
		moved.Add(amount)
		sum[name] = moved
	}
	for name := range before {
		if moved := sum[name]; moved.IsZero() {
			delete(sum, name)
		}
	}
}

// slotAmounts returns the amounts that a slot is charged. The list must not be
// changed.
func (d *Draft) slotAmounts(slot slot) corev1.ResourceList {
	keys := d.index.slots[slot]
	if len(keys) == 1 { // nearly always
		return d.state.Reservations[keys[0]].Amounts
	}
	var amounts corev1.ResourceList
	for _, key := range keys {
		amounts = quota.Max(amounts, d.state.Reservations[key].Amounts)
	}
	return amounts
}

func without(keys []Key, gone Key) []Key {
	var kept []Key
	for _, key := range keys {
		if key != gone {
			kept = append(kept, key)
		}
	}
	return kept
}

// cloneCounted copies the versions, because a settle may extend them.
func cloneCounted(counted map[schema.GroupResource]uint64) map[schema.GroupResource]uint64 {
	if counted == nil {
		return map[schema.GroupResource]uint64{}
	}
	return maps.Clone(counted)
}
