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

package machine

import (
	"errors"
	"slices"
	"time"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// phase is what a batch waits for.
type phase int

const (
	// ready: nothing.
	ready phase = iota
	observing
	loading
	swapping
	// resting: the time at which a call is tried again.
	resting
)

// batch is what is judged and written together.
type batch struct {
	// entries are in the order in which they are judged.
	entries []*entry
	// weighing: the batch has no entries. It only asks for the count, to find out whether a
	// settle would change anything.
	weighing bool
	// settles: the count is settled, too.
	settles bool

	// base is the ledger to judge on, if usable. fresh: it was read after every entry
	// arrived.
	base          Snapshot
	usable, fresh bool
	// count is of the reservations of base; nil before it was observed.
	count *ledger.Observation

	phase phase
	// asked is the newest version known when a load began.
	asked Version
	// next is what is being written, and ends which reservations end by it.
	next ledger.State
	ends ledger.Ends
	// unchanged: what is being written is what is stored already.
	unchanged bool
	// began is when it did, and restUntil when the rest after a failed call ends.
	began, restUntil time.Time
}

func (b *batch) abandon(which func(*entry) bool) {
	for _, entry := range b.entries {
		entry.abandoned = entry.abandoned || which(entry)
	}
}

// beginBatch takes what belongs to the next batch. Edits come first, because they may
// make room; then the charges, in order of arrival. No edit depends on a charge in its
// batch: one that is being released has been abandoned.
//
// Parked charges belong to a batch that may have room for them. What they were denied
// on still holds, unless something newer was seen: charges alone make no room.
func (m *Machine) beginBatch(s situation) {
	b := &batch{began: m.now, settles: s.urgent || s.lazy || m.settling.unweighed}
	for _, entry := range m.queue {
		if entry.charge == nil {
			b.entries = append(b.entries, entry)
		}
	}
	if len(b.entries) > 0 || b.settles || s.parked && (s.fresher || !m.now.Before(s.patience)) {
		b.entries, m.parked = append(b.entries, m.parked...), nil
	}
	for _, entry := range m.queue {
		if entry.charge != nil {
			b.entries = append(b.entries, entry)
		}
	}
	b.base, b.usable = m.known.snapshot, m.known.usable()
	m.known.fresher = false
	m.lastBatch, m.lastCharges, m.lastWrite = m.now, m.charges, 0
	m.queue, m.charges = nil, 0
	m.work = b
	m.goOn()
}

// goOn takes the batch as far as it goes without a reply:
//
//  1. read the ledger live, unless what is known of it may do;
//  2. ask for the count, if it is to be settled;
//  3. judge all in order; if any is refused for good on what may be old, go back to 1;
//  4. write, if there is anything to write;
//  5. answer all but those that are denied and still have patience: there may be
//     room for them in a moment. Only now, because a refusal may rest on a charge
//     before it in the batch, which counts only once it is written.
//
// If the write meets a conflict, another replica was first. Every entry is judged again
// on what that wrote, seen or read, and at once, because its turn lasts only until that
// replica writes again. If the write fails, every entry is judged again on a live state,
// once that can be read, for three seconds at most.
func (m *Machine) goOn() {
	b := m.work
	if b.isCalling() {
		return
	}
	m.drop(b)
	switch {
	case m.ended || b.isEmpty():
		m.giveUp(b)
	case b.phase == resting && m.now.Before(b.restUntil):
		m.emit(WakeAt{Time: b.restUntil})
	case !b.usable:
		b.phase, b.asked = loading, m.known.snapshot.Version
		m.known.gone = false
		m.emit(Load{})
	case b.settles && b.count == nil:
		b.phase = observing
		m.settling.begin(m.now)
		if b.base.void() || m.known.snapshot.Version.After(b.base.Version) {
			m.settling.weigh(m.now, true) // this batch doesn't settle what is stored by now
		}
		m.emit(Observe{Ledger: b.base.State})
	default:
		m.attempt(b)
	}
}

// giveUp ends a batch of which nobody needs anything more, or that nobody answers for.
func (m *Machine) giveUp(b *batch) {
	for _, entry := range b.entries {
		m.fail(entry, ErrEnded)
	}
	m.work = nil
}

// changesCount reports whether there may be something to settle once the batch is
// written, though nothing new is counted: an edit may have the ledger counted anew, and
// an object that is to be updated may have been seen in a later version already.
func (b *batch) changesCount() bool {
	return slices.ContainsFunc(b.entries, func(e *entry) bool { return e.charge == nil || e.charge.Reservation.From != "" })
}

// isToBeWritten reports whether the ledger is written even if the batch changes nothing.
// Nothing is written over a ledger that is void.
func (b *batch) isToBeWritten() bool {
	return !b.base.void() && slices.ContainsFunc(b.entries, func(e *entry) bool { return e.written })
}

// doubt notes that a write failed that may have happened.
func (b *batch) doubt() {
	for _, entry := range b.entries {
		entry.doubtful = true
	}
}

// isCalling reports whether the batch waits for a reply.
func (b *batch) isCalling() bool { return b.phase != ready && b.phase != resting }

func (b *batch) isEmpty() bool { return len(b.entries) == 0 && !b.settles }

// drop leaves out what nobody needs any more.
func (m *Machine) drop(b *batch) {
	b.entries = slices.DeleteFunc(b.entries, func(e *entry) bool { return e.isOver(m.now) })
}

// attempt judges the batch.
func (m *Machine) attempt(b *batch) {
	b.phase = ready
	draft := ledger.Edit(b.base.State)
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
	refused := func(e *entry) bool { return !e.granted() && !e.patient(m.now) }
	if !b.fresh && slices.ContainsFunc(b.entries, refused) {
		b.usable = false
		m.goOn()
		return
	}
	if draft.Changed() || b.isToBeWritten() {
		b.unchanged = !draft.Changed()
		b.phase, b.ends, b.next = swapping, draft.Ends(), draft.State()
		m.known.gone = false
		m.emit(Swap{Previous: b.base.Version, Next: b.next})
		return
	}
	m.conclude(b)
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

// conclude answers the batch, or parks it. If a read was made for a charge that is
// refused, whoever would ask for the next read within a pace is refused on this one.
func (m *Machine) conclude(b *batch) {
	due := m.now
	if b.fresh {
		due = due.Add(m.options.Pace)
	}
	for _, entry := range b.entries {
		if entry.patient(due) && !entry.abandoned && !m.ended {
			m.parked = append(m.parked, entry)
			continue
		}
		m.answer(entry)
	}
	if m.known.contended(m.now) {
		m.lastBatch = m.now
	}
	m.work, m.rest = nil, 0
}

// reply takes the reply to a call.
func (m *Machine) reply(event Event) {
	b := m.work
	awaited := ready
	switch event.(type) {
	case Observed:
		awaited = observing
	case Loaded:
		awaited = loading
	case Swapped:
		awaited = swapping
	}
	if b == nil || b.phase != awaited {
		m.emit(Impossible{Err: errUnasked})
		return
	}
	b.phase = ready
	switch event := event.(type) {
	case Observed:
		m.observed(b, event)
	case Loaded:
		m.loaded(b, event)
	case Swapped:
		m.swapped(b, event)
	}
}

func (m *Machine) observed(b *batch, event Observed) {
	if b.weighing {
		m.work = nil
		m.weighed(b.base, event.Observation)
		return
	}
	b.count, b.settles = event.Observation, event.Observation != nil
	if b.count != nil && b.base.State.IsAhead(*b.count) {
		m.settling.weighAgain(m.now)
	}
}

// weighed notes whether there is something to settle, and whether it may wait.
func (m *Machine) weighed(base Snapshot, count *ledger.Observation) {
	freed := m.settling.freed
	m.settling.begin(m.now)
	if count == nil || base.void() {
		return
	}
	if base.State.Quota != count.Quota {
		m.emit(Impossible{Err: errStranger})
		return
	}
	if base.State.IsAhead(*count) {
		m.settling.weighAgain(m.now)
	}
	draft := ledger.Edit(base.State)
	draft.Settle(*count)
	if draft.Changed() || m.known.unsure {
		m.settling.lazy = !m.known.unsure && !freed && base.State.Waits(*count)
		m.settling.urgent = !m.settling.lazy
	}
}

func (m *Machine) loaded(b *batch, event Loaded) {
	switch {
	case errors.Is(event.Err, ErrUnreadable):
		m.emit(Failed{Err: event.Err})
		m.failBatch(b, event.Err)
	case event.Err != nil:
		m.failed(b, event.Err)
	default:
		before := m.known.snapshot.Version
		if err := m.known.learn(event.Snapshot, b.asked); err != nil {
			m.emit(Impossible{Err: err})
			m.failBatch(b, err)
			return
		}
		b.base, b.usable, b.fresh, b.count = event.Snapshot, true, true, nil
		m.known.doubt(event.Snapshot.Version)
		if m.known.snapshot.Version != before {
			m.settling.weigh(m.now, true) // the watch will show nothing newer
		}
	}
}

func (m *Machine) swapped(b *batch, event Swapped) {
	switch {
	case event.Err == nil && b.unchanged && event.Version == b.base.Version:
		m.conclude(b) // the API server stores no version that says the same
	case event.Err == nil && !event.Version.After(b.base.Version):
		m.emit(Impossible{Err: errBackwards})
		m.known.unsure = true
		m.failBatch(b, errBackwards)
	case event.Err == nil:
		m.known.keep(Snapshot{Version: event.Version, State: b.next})
		m.known.own(event.Version)
		m.known.doubt(event.Version)
		m.lastWrite = event.Took
		if b.changesCount() {
			m.settling.weigh(m.now, true)
		}
		m.emit(Committed{Batch: len(b.entries), Took: event.Took, Ends: b.ends})
		m.conclude(b)
	case errors.Is(event.Err, ErrConflict):
		m.emit(Conflicted{})
		m.known.other(Version{}, m.now)
		m.catchUp(b)
	case errors.Is(event.Err, ErrRejected):
		m.rejected(b, event.Err)
	default:
		m.known.unsure = true
		b.usable, b.fresh, b.count = false, false, nil
		b.doubt()
		m.failed(b, event.Err)
	}
}

// catchUp takes what was seen since the batch was judged, if anything was. Not all that
// was written may have been seen yet: the swap tells. What is newer than a fresh ledger is
// fresh, too, and the spec was read when that was.
func (m *Machine) catchUp(b *batch) {
	spec := b.base.Spec
	b.usable = !m.known.unsure && m.known.snapshot.Version.After(b.base.Version)
	b.fresh, b.count = b.fresh && b.usable, nil
	if b.usable {
		b.base = m.known.snapshot
	}
	if b.fresh {
		b.base.Spec = spec
	}
}
