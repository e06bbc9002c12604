// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// settling is what there is to settle, as far as this machine knows.
type settling struct {
	// unweighed: the count or the ledger has changed since it was last weighed whether
	// a settle changes anything, and whether it may wait.
	unweighed bool
	// at is when that is weighed next, if unweighed.
	at time.Time
	// last is when the count was last asked for.
	last time.Time
	// freed: an object went since the count was asked for. An object that nobody was asked about may take its
	// place, and leave the sums equal. That must be in the ledger before a new leader, which may not have
	// seen it, settles.
	freed bool
	// urgent: there is something to settle at once. lazy: there is, and it may wait for
	// other changes to share a write with.
	urgent, lazy bool
	// idle: there is, and every limit is far, so that nobody waits for it.
	idle bool
	untaken
}

// untaken is that the ledger has not taken the count.
type untaken struct {
	// since is when there was something to settle first; zero if all is settled.
	since time.Time
	// why is nil if no cause is known.
	why error
	// told: it was reported.
	told bool
}

// lacks notes that the ledger has not taken the count; why may be nil.
func (u *untaken) lacks(now time.Time, why error) {
	if u.since.IsZero() {
		*u = untaken{since: now, told: u.told}
	}
	if why != nil {
		u.why = why
	}
}

// took notes what a settle by a count left out.
func (u *untaken) took(now time.Time, why error) {
	if why != nil {
		u.lacks(now, why)
		return
	}
	*u = untaken{told: u.told}
}

// tellAt is when it must be reported.
func (u *untaken) tellAt() time.Time {
	if u.since.IsZero() || u.told {
		return never
	}
	return u.since.Add(untakenFor)
}

// tellUntaken reports that the ledger has not taken the count for untakenFor, and that it has again.
func (m *Machine) tellUntaken() {
	u := &m.settling.untaken
	if u.told && u.since.IsZero() || !u.tellAt().After(m.now) {
		u.told = !u.since.IsZero()
		m.emit(Untaken{Since: u.since, Err: u.why})
	}
}

// weigh has a settle weighed: at once if less may be used, because charges may wait for
// that; otherwise no sooner than weighEvery after the last time, or weighIdly.
func (s *settling) weigh(now time.Time, freed bool) {
	every := weighEvery
	if s.idle {
		every = weighIdly
	}
	at := s.last.Add(every)
	if freed || at.Before(now) {
		at = now
	}
	if s.unweighed {
		at = earlier(at, s.at)
	}
	s.unweighed, s.at = true, at
}

// weighAgain has a settle weighed again after behindEvery, because the count was behind
// the ledger. What the count still has to see may concern no quota. Then no event tells
// that it has caught up.
func (s *settling) weighAgain(now time.Time) {
	if at := now.Add(behindEvery); !s.unweighed || at.Before(s.at) {
		s.unweighed, s.at = true, at
	}
}

// isToWeigh reports whether a settle must be weighed now. An urgent one needs no weighing.
func (s *settling) isToWeigh(now time.Time) bool {
	return s.unweighed && !s.urgent && !s.at.After(now)
}

func (s *settling) weighAt() time.Time {
	if !s.unweighed || s.urgent {
		return never
	}
	return s.at
}

// isDue reports whether a batch settles, too.
func (s *settling) isDue() bool { return s.urgent || s.lazy || s.idle || s.unweighed }

// classify notes how long a settle may wait that changes something. Far from every limit, what is free is
// wanted by few; freed, something went since a count was asked for.
func (s *settling) classify(weight ledger.Weight, freed bool) {
	switch {
	case weight.Far && !weight.Frees && !freed:
		s.idle = true
	case weight.Far:
		s.lazy, s.freed = true, true // what takes its place meanwhile doesn't put it off
	case !freed && weight.Waits:
		s.lazy = true
	default:
		s.urgent = true
	}
}

// begin notes that a count is asked for, of which nothing is known to be missing.
func (s *settling) begin(now time.Time) { *s = settling{last: now, untaken: s.untaken} }
