// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"
	"time"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// phase is the event that a batch waits for.
type phase int

const (
	// ready: nothing.
	ready phase = iota
	// weighing: the count, of which nothing is settled. The batch has no entries. It only finds out whether a
	// settle would change anything.
	weighing
	observing
	loading
	swapping
	// resting: the time at which a call is tried again.
	resting
	// awaiting: another replica's escrow, which was asked back.
	awaiting
)

// batch has the entries that are judged and written together.
type batch struct {
	// entries are in the order in which they are judged.
	entries []*entry
	// settles: the count is settled, too.
	settles bool
	// records: grants from escrow must be recorded now.
	records bool

	// base is the ledger to judge on, and age how new that is.
	base Snapshot
	age  age
	// count is of the reservations of base; nil before it was observed.
	count *ledger.Observation

	phase phase
	// asked is the newest version known when a load began, at askedAt.
	asked   Version
	askedAt time.Time
	// next is the ledger that is being written, and ends the reservations that
	// end by it.
	next ledger.State
	ends ledger.Ends
	// flight is the change of escrow in this write; nil if there is none.
	flight *flight
	// purpose is the reason for the write.
	purpose purpose
	// began is when the batch began, and restUntil when the rest after a failed call ends.
	began, restUntil time.Time
}

// age is how new the ledger is that a batch is judged on.
type age int

const (
	// outdated: the ledger must be read before the batch is judged.
	outdated age = iota
	// remembered: it was seen or read before. A refusal must not rest on it.
	remembered
	// live: it was read after every entry arrived.
	live
)

// purpose is the reason for a write.
type purpose int

const (
	// change: the draft of the batch is stored.
	change purpose = iota
	// proof: the stored ledger is written again.
	proof
	// recall: other replicas are asked for their escrows.
	recall
)

func (b *batch) abandon(which func(*entry) bool) {
	for _, entry := range b.entries {
		entry.abandoned = entry.abandoned || which(entry)
	}
}

// beginBatch takes the entries of the next batch. Edits come first, because they
// may make room; then the charges, in order of arrival. No edit depends on a
// charge in its batch: a charge that is being released has been abandoned.
//
// Parked charges belong to a batch that may have room for them. Their denials
// still hold, unless something newer was seen: charges alone make no room.
func (m *Machine) beginBatch(s situation) {
	b := &batch{began: m.now, settles: m.settling.isDue(), records: s.records}
	edits := slices.DeleteFunc(slices.Clone(m.queue), func(e *entry) bool { return e.charge != nil })
	charges := slices.DeleteFunc(m.queue, func(e *entry) bool { return e.charge == nil })
	if len(edits) > 0 || b.settles || s.parked && (s.fresher || !m.now.Before(s.patience)) {
		renew(m.parked, m.now)
		charges, m.parked = append(m.parked, charges...), nil
	}
	slices.SortStableFunc(charges, func(a, b *entry) int { return a.arrival - b.arrival })
	b.entries = slices.Concat(edits, charges)
	b.base = m.known.snapshot
	if m.known.usable() {
		b.age = remembered
	}
	m.known.judged = b.base.Version
	if b.records {
		m.escrow.tried = m.now
	}
	m.lastBatch, m.lastCharges, m.lastWrite = m.now, m.charges, 0
	m.queue, m.charges = nil, 0
	m.work = b
	m.goOn()
}

// goOn takes the batch as far as it goes without a reply:
//
//  1. read the ledger live, unless the known ledger may be used;
//  2. ask for the count, if it must be settled, unless it was weighed;
//  3. judge all in order; if any is refused for good on a state that may be old,
//     go back to 1;
//  4. write, if there is anything to write;
//  5. answer all entries except two groups: denied charges that still have
//     patience, because there may be room for them in a moment, and charges whose
//     patience ended during the write, if nothing was read: they wait for a batch
//     that reads. Answers come last, because a refusal may rest on a charge
//     before it in the batch, which counts only once it is written.
//
// If the write meets a conflict, another replica was first. Every entry is judged
// again on the ledger that the other replica wrote, seen or read, and at once,
// because its turn lasts only until that replica writes again. If the write
// fails, every entry is judged again on a live state, once that can be read, until
// its caller has waited for three seconds.
func (m *Machine) goOn() {
	b := m.work
	if b.isCalling() {
		return
	}
	m.drop(b)
	switch {
	case m.life == ended || b.isEmpty():
		m.giveUp(b)
	case m.rests(b):
		m.emit(WakeAt{Time: b.restUntil})
	case b.age == outdated:
		m.load(b)
	case b.settles && b.count == nil:
		m.observe(b)
	default:
		m.attempt(b)
	}
}

// load asks for a live read. Denials rest on the spec's version, too. It isn't read if that was done a moment ago, and all
// charges are of that version: to read it costs the API server the more, the more namespaces the quota has, and a crowd may be
// refused all the time.
func (m *Machine) load(b *batch) {
	isOld := !m.now.Before(m.known.specRead.Add(specFor))
	needsSpec := func(e *entry) bool { return e.charge != nil && (isOld || e.isOfOtherSpec(&m.known.spec)) }
	b.phase, b.asked, b.askedAt = loading, m.known.snapshot.Version, m.now
	m.known.gone = false
	m.emit(Load{Spec: slices.ContainsFunc(b.entries, needsSpec)})
}

// observe asks for the count, unless it was weighed and nothing has changed since.
func (m *Machine) observe(b *batch) {
	weighed := m.settling.weighed
	if m.settling.of != b.base.Version || len(m.escrow.granted) > 0 {
		weighed = nil
	}
	m.settling.begin(m.now)
	if b.base.void() || m.known.snapshot.Version.After(b.base.Version) {
		m.settling.weigh(m.now, true) // this batch doesn't settle the ledger that is stored by now
	}
	if weighed != nil {
		m.observed(b, weighed)
		m.attempt(b)
		return
	}
	b.phase = observing
	m.emit(Observe{Ledger: m.escrow.with(b.base.State)})
}

// rests reports whether a batch waits for a time that has not come. A batch that awaits another replica's escrow goes
// on as soon as anything newer is known.
func (m *Machine) rests(b *batch) bool {
	if b.phase == awaiting && (m.known.snapshot.Version.After(b.base.Version) || !m.now.Before(b.restUntil)) {
		b.phase, b.began = ready, m.now
		renew(b.entries, m.now)
		if m.known.snapshot.Version.After(b.base.Version) {
			m.catchUp(b)
		}
	}
	return (b.phase == resting || b.phase == awaiting) && m.now.Before(b.restUntil)
}

// giveUp ends a batch that has nothing left to do, or whose machine has ended.
func (m *Machine) giveUp(b *batch) {
	for _, entry := range b.entries {
		m.fail(entry, ErrEnded)
	}
	m.work = nil
}

// changesCount reports whether there may be something to settle once the batch is
// written, though nothing new is counted: an edit may have the ledger counted again, and
// an object that must be updated may have been seen in a later version already.
func (b *batch) changesCount() bool {
	return slices.ContainsFunc(b.entries, func(e *entry) bool { return e.charge == nil || e.charge.Reservation.From != "" })
}

// isToBeWritten reports whether the ledger is written even if the batch changes nothing.
// Nothing is written over a ledger that is void.
func (b *batch) isToBeWritten() bool {
	return !b.base.void() && slices.ContainsFunc(b.entries, func(e *entry) bool { return e.kind == proving })
}

// markUncertain notes that a write failed that may have happened.
func (b *batch) markUncertain() {
	for _, entry := range b.entries {
		entry.doubtful = true
	}
}

// isCalling reports whether the batch waits for a reply.
func (b *batch) isCalling() bool {
	return b.phase != ready && b.phase != resting && b.phase != awaiting
}

func (b *batch) isEmpty() bool { return len(b.entries) == 0 && !b.settles && !b.records }

// drop removes the entries that are over.
func (m *Machine) drop(b *batch) {
	b.entries = slices.DeleteFunc(b.entries, func(e *entry) bool { return e.isOver(m.now) })
}

// conclude answers the batch, or parks its charges. If the ledger was read live for a refusal, charges whose patience
// ends within half a pace are refused on the same read. Without a read, charges whose patience ended during the write
// wait for one: they may not have been judged by the newest spec.
func (m *Machine) conclude(b *batch) {
	due := m.now
	if b.age == live {
		due = due.Add(m.options.Pace / 2)
	}
	for _, entry := range b.entries {
		waits := entry.patient(due) || b.age != live && entry.lacksRoom()
		if waits && !entry.abandoned && m.life != ended {
			m.park(entry)
			continue
		}
		m.answer(entry)
	}
	if m.known.contended(m.now) {
		m.lastBatch = m.now
	}
	if b.count != nil && !b.base.void() {
		m.settling.took(m.now, b.base.State.Untaken(*b.count))
	}
	m.work, m.rest = nil, 0
	m.spendQueued()
}
