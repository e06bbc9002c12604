// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"
	"time"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// attempt judges the batch, and writes the result. The same write records the grants from escrow, and frees the rest of
// it. To record grants is no reason to write early, unless the batch has charges, because the escrow was too small for
// these.
func (m *Machine) attempt(b *batch) {
	b.phase, b.purpose = ready, change
	m.escrow.see(m.now, b.base.State)
	draft, records, writes := m.judgeWithEscrow(b)
	standing, over := m.escrow.trackRecalls(m.now, b.base.State)
	if standing && b.base.State.Unsettles(draft.Peek()) {
		m.await(b, over)
		return
	}
	asks := m.awaitRoom(b, draft, standing, over)
	refused := func(e *entry) bool { return !e.granted() && !e.patient(m.now) }
	switch {
	case b.age != live && slices.ContainsFunc(b.entries, refused):
		b.age = outdated
		m.goOn()
	case writes || asks:
		m.write(b, draft, records)
	case b.isToBeWritten():
		m.write(b, ledger.Edit(b.base.State), false)
	default:
		m.conclude(b)
	}
}

// judgeWithEscrow judges all entries. It reports whether grants from escrow are recorded in the draft, and whether
// there is a reason to write it.
func (m *Machine) judgeWithEscrow(b *batch) (draft *ledger.Draft, records, writes bool) {
	records, writes = b.records || !m.escrow.isOff() && slices.ContainsFunc(b.entries, (*entry).reserves), true
	if !records && m.escrow.isHeld(b.base.State) {
		records, writes = true, m.judge(b, false).Changed()
	}
	return m.judge(b, records), records, writes
}

// judge judges all entries on the base of a batch. If it records, the draft has the grants from escrow in place of the
// escrow.
func (m *Machine) judge(b *batch, records bool) *ledger.Draft {
	draft := ledger.Edit(b.base.State)
	if records && !b.base.void() {
		m.escrow.record(draft)
	}
	edits := 0
	for edits < len(b.entries) && b.entries[edits].charge == nil {
		b.entries[edits].apply(draft, &b.base)
		edits++
	}
	if b.count != nil && !b.base.void() {
		m.settle(draft, b.count)
	}
	for _, entry := range b.entries[edits:] {
		entry.apply(draft, &b.base)
	}
	return draft
}

// write writes a draft, if anything is changed in it, and answers otherwise. If the draft records grants from escrow,
// the next escrow is taken.
func (m *Machine) write(b *batch, draft *ledger.Draft, records bool) {
	b.flight = nil
	if records {
		may := m.life == working && len(m.parked) == 0 && !slices.ContainsFunc(b.entries, (*entry).denied) &&
			!b.base.State.Unsettles(draft.Peek())
		b.flight = m.escrow.take(m.now, draft, b.granted(), may)
	}
	if draft.Changed() || b.isToBeWritten() {
		if !draft.Changed() {
			b.purpose = proof
		}
		m.swap(b, draft)
		return
	}
	m.conclude(b)
}

func (m *Machine) swap(b *batch, draft *ledger.Draft) {
	b.phase, b.ends, b.next = swapping, draft.Ends(), draft.State()
	m.known.gone = false
	m.escrow.begin(b.flight)
	m.emit(Swap{Previous: b.base.Version, Next: b.next, Recalls: b.purpose == recall})
}

// await recalls the escrows of other replicas. The batch waits until these are returned or over. The own
// escrow is returned first, because another replica may wait for it.
func (m *Machine) await(b *batch, over time.Time) {
	draft := ledger.Edit(b.base.State)
	b.flight = nil
	held := m.escrow.isHeld(b.base.State)
	if held {
		m.escrow.record(draft)
		b.flight = m.escrow.take(m.now, draft, nil, false)
	}
	if draft.Recall(m.escrow.options.UID) || held {
		b.purpose = recall
		m.swap(b, draft)
		return
	}
	b.phase, b.restUntil = awaiting, over
	m.emit(WakeAt{Time: over})
}

// awaitRoom recalls the escrows of other replicas if a charge would be denied that would fit without them.
// The charge waits for them once. awaitRoom reports whether the ledger must be written: to recall, or to
// record own grants, which are charged twice while they are counted and not recorded.
func (m *Machine) awaitRoom(b *batch, draft *ledger.Draft, standing bool, over time.Time) bool {
	var without *ledger.Draft
	asks := false
	for _, entry := range b.entries {
		entry.awaitUntil = time.Time{}
		asks = asks || entry.denied() && len(m.escrow.granted) > 0
		if hasWaited := !entry.awaits.IsZero() && !m.now.Before(entry.awaits); !standing || !entry.denied() || hasWaited {
			continue
		}
		if without == nil {
			without = ledger.EditWithoutEscrows(m.escrow.with(b.base.State))
		}
		if _, denied := without.Judge(*entry.charge).(ledger.Denied); denied {
			continue
		}
		if draft.Recall(m.escrow.options.UID) {
			asks, over = true, later(over, m.now.Add(m.options.Escrow.Recall))
		}
		if entry.awaits.IsZero() {
			entry.awaits = over
		}
		entry.awaitUntil = entry.awaits
	}
	return asks
}

// settle moves the draft to the count. The ledger of a quota that had the same name
// must not become this one's: it was opened for that one, and is about to be removed.
func (m *Machine) settle(draft *ledger.Draft, count *ledger.Observation) {
	if draft.Quota() != count.Quota {
		m.emit(Impossible{Err: errStranger})
		return
	}
	draft.Settle(*count)
}
