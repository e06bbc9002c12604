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
	// triedFor is how long a batch is tried whose calls fail. Callers must hear
	// of it before their own time is up.
	triedFor = 3 * time.Second
	// releasedFor is how long the machine tries to release the reservations that
	// a batch may have made.
	releasedFor = 30 * time.Second
)

// failed takes the error of a call that may succeed later.
func (m *Machine) failed(b *batch, err error) {
	m.emit(Failed{Err: err})
	until := b.began.Add(triedFor)
	if !m.now.Before(until) {
		m.abandonBatch(b, fmt.Errorf("%w: %w", ErrStore, err))
		return
	}
	longest := longestRest
	if slices.ContainsFunc(b.entries, func(e *entry) bool { return e.id != 0 && !e.abandoned }) {
		longest = shortRest
	}
	m.rest = min(max(2*m.rest, firstRest), longest)
	b.phase, b.restUntil = resting, earlier(m.now.Add(m.rest), until)
}

// abandonBatch answers every caller, and leaves to later batches the work that
// must be done all the same.
func (m *Machine) abandonBatch(b *batch, err error) {
	m.failBatch(b, err)
	for _, entry := range b.entries {
		if entry.id == 0 && !entry.abandoned {
			m.enqueue(entry)
		}
	}
	if b.settles {
		m.settling.weigh(m.now, true)
	}
}

// failBatch answers every caller, and releases the reservations that the batch
// may have made for them.
func (m *Machine) failBatch(b *batch, err error) {
	m.work = nil
	for _, entry := range b.entries {
		m.fail(entry, err)
		// If the caller has gone, its reservation is released already.
		if entry.doubtful && entry.reserves() && !entry.abandoned {
			m.release(entry.charge.Reservation.Key(), m.now.Add(releasedFor))
		}
	}
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
		m.failed(b, err)
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
