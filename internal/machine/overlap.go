// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// overlap is what the machine must know to say exactly what is held. What a replica grants from its escrow is recorded
// up to two seconds later, and may be counted meanwhile. Then the sum of what is used and reserved has it twice, until a
// settle ends the reservation. While that may be so, nothing is reported but what a count says.
type overlap struct {
	// recorded: the known ledger may have reservations that were recorded after their objects were counted.
	recorded bool
	// granted: what was granted from the own escrow, and isn't recorded, may be counted in the known ledger.
	granted bool
}

// isTwice reports whether something may be in the sum twice.
func (o *overlap) isTwice(granted []ledger.Reservation) bool {
	return o.recorded || o.granted && len(granted) > 0
}

// learn takes it that a ledger was seen that this machine didn't write, after another one. Nothing is counted between
// two ledgers that have counted equally far.
func (o *overlap) learn(before, after Snapshot, own types.UID, granted int) {
	counted := !before.State.HasCountedAsFar(after.State)
	o.granted = o.granted || counted && granted > 0
	escrowed := len(before.State.ForeignEscrows(own))+len(after.State.ForeignEscrows(own)) > 0
	switch reserves := reservesMore(before.State, after.State); {
	case before.void():
		o.recorded = reserves
	case escrowed && reserves:
		o.recorded = true
	case counted:
		o.recorded = false
	}
}

// reservesMore reports whether a ledger has reservations for objects that one before it hadn't.
func reservesMore(before, after ledger.State) bool {
	for key, reservation := range after.Reservations {
		if _, had := before.Reservations[key]; !had && !reservation.IsEscrow() {
			return true
		}
	}
	return false
}

// wrote takes it that a batch was written. Granted is how much was granted from the own escrow and isn't recorded by it.
func (o *overlap) wrote(b *batch, granted int) {
	settled := b.count != nil && !b.base.State.IsAhead(*b.count)
	o.recorded = !settled && (o.recorded || o.granted && b.flight.records())
	o.granted = granted > 0 && (o.granted || b.count != nil)
}

// learnHeld takes it that the known ledger replaced one before it, and that no batch wrote it.
func (m *Machine) learnHeld(before Snapshot) {
	m.overlap.learn(before, m.known.snapshot, m.escrow.options.UID, len(m.escrow.granted))
}

// tellHeld reports what is held by the ledger that is known, and what was granted since, if more may be held than
// by the ledger before.
func (m *Machine) tellHeld(before Version) {
	known := &m.known.snapshot
	if !m.held && known.Version == before || known.void() || m.overlap.isTwice(m.escrow.granted) {
		return
	}
	known.State = known.State.Indexed()
	held := Holds{Quota: known.State.Quota}
	if len(m.escrow.granted) > 0 {
		m.escrow.localise(*known)
		held.Amounts = m.escrow.local.Held()
	} else {
		held.Amounts = known.State.Held()
	}
	m.emit(held)
}

// tellCounted reports what is held by a count, if the ledger may not tell that yet. Weighed is the ledger with what was
// granted from escrow before the count.
func (m *Machine) tellCounted(weighed ledger.State, count ledger.Observation) {
	if !m.overlap.recorded && len(m.escrow.granted)+len(weighed.ForeignEscrows(m.escrow.options.UID)) == 0 {
		return
	}
	draft := ledger.Edit(weighed)
	draft.Settle(count)
	m.emit(Holds{Quota: weighed.Quota, Amounts: draft.Held()})
}
