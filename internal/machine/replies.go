// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// reply takes the reply to a call.
func (m *Machine) reply(event Event) {
	b := m.work
	asked := ready
	if b != nil {
		asked, b.phase = b.phase, ready
	}
	switch event := event.(type) {
	case Observed:
		if asked == weighing {
			m.work = nil
			m.weighed(b.base, event.Observation)
			return
		}
		if asked == observing {
			m.observed(b, event.Observation)
			return
		}
	case Loaded:
		if asked == loading {
			m.loaded(b, event)
			return
		}
	case Swapped:
		if asked == swapping {
			m.swapped(b, event)
			return
		}
	}
	if b != nil {
		b.phase = asked
	}
	m.emit(Impossible{Err: errUnasked})
}

func (m *Machine) observed(b *batch, count *ledger.Observation) {
	b.count, b.settles = count, count != nil
	if b.count != nil && isBehind(*b.count, b.base.State) {
		m.settling.weighAgain(m.now)
	}
}

// isBehind reports whether a count has yet to come as far as the ledger's, or as far as a caller has asked for.
func isBehind(count ledger.Observation, state ledger.State) bool {
	return state.IsAhead(count) || state.Asked > count.Members
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
	if isBehind(*count, base.State) {
		m.settling.weighAgain(m.now)
	}
	if m.known.doubt == unread {
		m.settling.need = urgent
		return
	}
	why := base.State.Untaken(*count)
	if weight := base.State.Weigh(*count); weight.Changes {
		m.settling.lacks(m.now, why)
		if until := m.settling.since.Add(blankFor); weight.Blank && m.now.Before(until) {
			m.settling.weighBy(earlier(m.now.Add(behindEvery), until)) // if a first count doesn't come before
			return
		}
		m.settling.classify(weight, freed)
		if m.settling.at.IsZero() {
			m.settling.weighed, m.settling.of = count, base.Version
		}
	} else {
		m.settling.took(m.now, why)
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
		b.base, b.age, b.count = event.Snapshot, live, nil
		if spec := event.Snapshot.Spec; spec != nil {
			m.known.spec, m.known.specRead = *spec, b.askedAt
		}
		m.known.forgetIfGone(event.Snapshot.Version)
		if m.known.snapshot.Version != before {
			m.settling.weigh(m.now, true) // the watch will show nothing newer
		}
	}
}

func (m *Machine) swapped(b *batch, event Swapped) {
	m.escrow.end(event.Err == nil)
	if event.Err == nil {
		m.known.doubt = none
	}
	switch {
	case event.Err == nil && b.purpose == proof && event.Version == b.base.Version:
		m.conclude(b) // the API server stores no version that says the same
	case event.Err == nil && !event.Version.After(b.base.Version):
		m.emit(Impossible{Err: ErrBackwards})
		m.known.doubt = unread
		m.failBatch(b, ErrBackwards)
	case event.Err == nil:
		m.committed(b, event)
	case errors.Is(event.Err, ErrConflict):
		m.emit(Conflicted{})
		if b.count != nil {
			m.settling.lacks(m.now, event.Err)
		}
		m.known.other(Version{}, m.now)
		m.catchUp(b)
	case errors.Is(event.Err, ErrRejected):
		m.rejected(b, event.Err)
	default:
		m.known.doubt = unread
		b.age, b.count = outdated, nil
		b.markUncertain()
		m.failed(b, event.Err)
	}
}

// committed ends a write of the ledger that succeeded.
func (m *Machine) committed(b *batch, event Swapped) {
	written := Snapshot{Version: event.Version, State: b.next}
	m.known.wrote(written)
	m.escrow.see(m.now, b.next)
	m.lastWrite = event.Took
	renew(m.queue, m.now)
	if b.changesCount() || b.next.Asked > b.base.State.Asked {
		m.settling.weigh(m.now, true)
	}
	m.emit(Committed{Batch: len(b.entries), Took: event.Took, Ends: b.ends})
	if b.purpose == recall {
		written.Spec = b.base.Spec
		b.purpose, b.base = change, written
		m.goOn()
		return
	}
	m.escrow.note(m.now, b.granted()...)
	m.conclude(b)
}

// granted returns the charges that are.
func (b *batch) granted() []ledger.Charge {
	var granted []ledger.Charge
	for _, entry := range b.entries {
		if entry.reserves() && entry.granted() {
			granted = append(granted, *entry.charge)
		}
	}
	return granted
}

// catchUp takes ledgers that were seen since the batch was judged, if any were.
// Some writes may not have been seen yet: the swap finds that out. A ledger that
// is newer than a fresh one is fresh, too. If the spec was read with that one, it still holds.
func (m *Machine) catchUp(b *batch) {
	spec := b.base.Spec
	b.count = nil
	if m.known.doubt == unread || !m.known.snapshot.Version.After(b.base.Version) {
		b.age = outdated
		return
	}
	b.base = m.known.snapshot
	if b.age == live {
		b.base.Spec = spec
	} else {
		b.age = remembered
	}
}
