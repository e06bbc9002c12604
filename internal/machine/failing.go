// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

const (
	// firstRest and longestRest bound the pauses between calls that fail. Each pause is
	// twice as long as the one before.
	firstRest, longestRest = 2 * time.Millisecond, time.Second
	// shortRest bounds them while callers wait. With pauses of up to a second there were some eleven attempts in triedFor,
	// too few if two calls in five fail.
	shortRest = 250 * time.Millisecond
	// triedFor is how long a caller waits for a ledger that fails, in whichever batches, and how long a batch is tried whose
	// calls fail. Callers must hear of it before their own time is up.
	triedFor = 3 * time.Second
	// releasedFor is how long the machine tries to release the reservations that
	// a batch may have made.
	releasedFor = 30 * time.Second
)

// failed takes the error of a call that may succeed later.
func (m *Machine) failed(b *batch, err error) {
	m.emit(Failed{Err: err})
	for _, entry := range slices.Concat(b.entries, m.queue) {
		if entry.hasCaller() && !m.now.Before(entry.since.Add(triedFor)) {
			m.failEntry(entry, fmt.Errorf("%w: %w", ErrStore, err))
		}
	}
	m.tryAgain(b)
}

// tryAgain has a batch rest before its next call, which is made at the end of a caller's time at the latest.
func (m *Machine) tryAgain(b *batch) {
	until, longest := b.began.Add(triedFor), longestRest
	for _, entry := range slices.Concat(b.entries, m.queue) {
		if entry.hasCaller() {
			until, longest = earlier(until, entry.since.Add(triedFor)), shortRest
		}
	}
	if !m.now.Before(until) {
		m.abandonBatch(b)
		return
	}
	m.rest = min(max(2*m.rest, firstRest), longest)
	b.phase, b.restUntil = resting, earlier(m.now.Add(m.rest), until)
}

// hurry shortens the pause of a batch that fails, because a caller waits by now.
func (m *Machine) hurry(added *entry) {
	if m.work != nil && m.work.phase == resting && added.hasCaller() {
		m.work.restUntil = earlier(m.work.restUntil, m.now.Add(shortRest))
	}
}

// abandonBatch leaves to later batches the work that must be done all the same, and the callers whose time isn't over.
func (m *Machine) abandonBatch(b *batch) {
	m.work = nil
	m.putBack(slices.DeleteFunc(b.entries, func(e *entry) bool { return e.abandoned }))
	if b.settles {
		m.settling.weigh(m.now, true)
	}
}

// failBatch answers every caller.
func (m *Machine) failBatch(b *batch, err error) {
	m.work = nil
	for _, entry := range b.entries {
		m.failEntry(entry, err)
	}
}

// failEntry answers a caller, and releases the reservation that a lost write may have made for it. The entry is dropped by its
// batch or, if it is in the queue, by the next one.
func (m *Machine) failEntry(e *entry, err error) {
	m.fail(e, err)
	// If the caller has gone, its reservation is released already.
	if e.doubtful && e.reserves() && !e.abandoned {
		m.release(e.charge.Reservation.Key(), m.now.Add(releasedFor))
	}
	e.abandoned = true
}

// rejected is called when the API server won't store the content of a write. It
// has stored nothing. If the batch also settles, it is tried again without the
// settle. Otherwise it is halved until the entry that is to blame fails alone.
func (m *Machine) rejected(b *batch, err error) {
	settled := b.count != nil
	if settled {
		m.settling.lacks(m.now, err)
	}
	b.count, b.settles = nil, false
	if b.flight.records() {
		m.rejectedRecord(b, err)
		return
	}
	switch half := (len(b.entries) + 1) / 2; {
	case len(b.entries) == 0:
		b.settles = true
		m.emit(Failed{Err: err})
		m.tryAgain(b)
		return
	case settled:
	case len(b.entries) == 1:
		m.emit(Failed{Err: err})
		m.failBatch(b, err)
		return
	default:
		m.putBack(b.entries[half:])
		b.entries = b.entries[:half]
	}
	m.emit(Failed{Err: err})
	if settled {
		m.settling.weigh(m.now, true)
	}
}

// rejectedRecord finds out whether the grants from escrow are to blame: it tries to write them without anything else.
func (m *Machine) rejectedRecord(b *batch, err error) {
	m.emit(Failed{Err: err})
	m.settling.weigh(m.now, true)
	if len(b.entries) == 0 {
		m.escrow.abandon()
	}
	m.putBack(b.entries)
	b.entries, b.records = nil, len(b.entries) > 0
}

// putBack puts entries before all that wait.
func (m *Machine) putBack(entries []*entry) {
	m.queue = slices.Concat(entries, m.queue)
	for _, entry := range entries {
		if entry.charge != nil {
			m.charges++
		}
	}
}

// release takes back a reservation, until it is given up.
func (m *Machine) release(key ledger.Key, until time.Time) {
	m.enqueue(&entry{kind: editing, releases: key, change: func(draft *ledger.Draft) { draft.Release(key) }, until: until})
}
