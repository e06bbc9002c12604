// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// Draft is a State being changed. It owns its copy: the State that it was made
// from stays as it was.
type Draft struct {
	state   State
	index   *index
	changed bool
	ends    Ends
	// suspected has the amounts of each namespace that is a suspect or has doubtful reservations; nil if they must be gathered
	// first.
	suspected map[string]corev1.ResourceList
	// surged: the charge that was judged last fits in surge only.
	surged bool
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
	draft.state.index = nil
	draft.state.Reservations, draft.state.Escrows = cloned(state.Reservations), cloned(state.Escrows)
	draft.state.Suspects, draft.state.Surgers = cloned(state.Suspects), cloned(state.Surgers)
	if before := state.index; before != nil {
		draft.index = &index{
			slots: maps.Clone(before.slots), reserved: maps.Clone(before.reserved), escrowed: maps.Clone(before.escrowed),
			bytes: before.bytes, doubtful: before.doubtful,
		}
		return draft
	}
	draft.index = &index{
		slots: make(map[slot][]Key, len(state.Reservations)), reserved: corev1.ResourceList{}, escrowed: corev1.ResourceList{},
	}
	for key, reservation := range state.Reservations {
		slot := reservation.slot()
		draft.index.slots[slot] = append(draft.index.slots[slot], key)
		draft.index.bytes += reservation.Size()
		draft.index.doubtful += reservation.doubt()
	}
	// Once for each slot: a name that is tried again and again has many reservations in one.
	for slot := range draft.index.slots {
		move(draft.index.reserved, nil, draft.slotAmounts(slot))
	}
	for _, escrow := range state.Escrows {
		draft.index.hold(Escrow{}, escrow)
	}
	for _, suspect := range state.Suspects {
		draft.index.bytes += suspect.Size()
	}
	for _, surger := range state.Surgers {
		draft.index.bytes += surger.Size()
	}
	return draft
}

// cloned is a copy to write to.
func cloned[K comparable, V any](all map[K]V) map[K]V {
	if all == nil {
		return map[K]V{}
	}
	return maps.Clone(all)
}

// State returns the changed state. The draft must not be used afterwards.
func (d *Draft) State() State {
	state := d.state
	state.index = d.index
	return state
}

// Peek returns the state as it is now, for a look at all but its sums. The draft may be used
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

// Size is how many bytes the reservations, escrows, suspects and surgers take at most as they are stored.
func (d *Draft) Size() int { return d.index.bytes }

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
	d.index.bytes += reservation.Size() - d.state.Reservations[key].Size()
	d.doubtMore(reservation.doubt() - d.state.Reservations[key].doubt())
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

// Release gives a charge back because its request is known to have failed.
func (d *Draft) Release(key Key) {
	d.end(key, &d.ends.Released)
}

// Drop removes an expired reservation that a live look found without an object.
func (d *Draft) Drop(expired Key) { d.end(expired, &d.ends.Expired) }

func (d *Draft) remove(key Key) {
	reservation, known := d.state.Reservations[key]
	if !known {
		return
	}
	slot := reservation.slot()
	before := d.slotAmounts(slot)
	d.index.bytes -= reservation.Size()
	d.doubtMore(-reservation.doubt())
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
	move(d.index.reserved, before, after)
	if held, ok := d.suspected[slot.namespace]; ok {
		d.suspected[slot.namespace] = quota.Subtract(quota.Add(held, after), before)
	}
}

// hold corrects the running sums when an escrow changes; before or after is zero for none.
func (i *index) hold(before, after Escrow) {
	move(i.reserved, before.Amounts, after.Amounts)
	move(i.escrowed, before.Amounts, after.Amounts)
	i.bytes += after.Size() - before.Size()
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
