// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// settling has the machine's knowledge of work for a settle.
type settling struct {
	// at is when a settle is weighed next: the count or the ledger has changed since the last time. Zero for never.
	at time.Time
	// last is when the count was last asked for, or settled as it was weighed.
	last time.Time
	// freed: an object went since the count was asked for. An object that was stored without a request may take its
	// place, and leave the sums equal. That must be in the ledger before a new leader, which may not have seen it,
	// settles.
	freed bool
	need  need
	// weighed is the count that was weighed last, for a ledger of version of. It is nil if one of them has changed since, or
	// may have.
	weighed *ledger.Observation
	of      Version
	untaken
}

// need is how long a settle may wait.
type need int

const (
	// nothing: a settle would change nothing.
	nothing need = iota
	// idle: every limit is far, so no charge waits for the settle.
	idle
	// lazy: the settle may wait for other changes, to share a write with them.
	lazy
	// urgent: the settle must not wait.
	urgent
)

// untaken is the time in which the ledger has not taken the count.
type untaken struct {
	state report
	// since is when there was something to settle first, unless all is settled.
	since time.Time
	// why is nil if no cause is known.
	why error
}

// report is the part of an untaken count that was reported.
type report int

const (
	// upToDate: all is settled.
	upToDate report = iota
	// late: the count isn't settled, and that isn't reported yet.
	late
	// reported: the count isn't settled.
	reported
	// overcome: all is settled, and only the contrary is reported.
	overcome
)

// lacks notes that the ledger has not taken the count; why may be nil.
func (u *untaken) lacks(now time.Time, why error) {
	switch u.state {
	case upToDate:
		*u = untaken{state: late, since: now}
	case overcome:
		*u = untaken{state: reported, since: now}
	default:
	}
	if why != nil {
		u.why = why
	}
}

// took notes the parts of a count that a settle left out.
func (u *untaken) took(now time.Time, why error) {
	if why != nil {
		u.lacks(now, why)
		return
	}
	switch u.state {
	case late:
		*u = untaken{}
	case reported:
		*u = untaken{state: overcome}
	default:
	}
}

// tellAt is when it must be reported.
func (u *untaken) tellAt() time.Time {
	if u.state != late {
		return never
	}
	return u.since.Add(untakenFor)
}

// tellUntaken reports that the ledger has not taken the count for untakenFor, and that it has again.
func (m *Machine) tellUntaken() {
	u := &m.settling.untaken
	switch {
	case u.state == overcome:
		u.state = upToDate
	case !u.tellAt().After(m.now):
		u.state = reported
	default:
		return
	}
	m.emit(Untaken{Since: u.since, Err: u.why})
}

// weigh has a settle weighed: at once if less may be used, because charges may wait for
// that; otherwise no sooner than weighEvery after the last time, or weighIdly.
func (s *settling) weigh(now time.Time, freed bool) {
	every := weighEvery
	if s.need == idle {
		every = weighIdly
	}
	at := s.last.Add(every)
	if freed || at.Before(now) {
		at = now
	}
	s.weighBy(at)
}

// weighBy has a settle weighed at a time, unless it is weighed before.
func (s *settling) weighBy(at time.Time) {
	s.weighed = nil
	if s.at.IsZero() || at.Before(s.at) {
		s.at = at
	}
}

// weighAgain has a settle weighed again after behindEvery, because the count was
// behind the ledger. The changes that the count still has to see may concern no
// quota. Then no event shows that it has caught up.
func (s *settling) weighAgain(now time.Time) { s.weighBy(now.Add(behindEvery)) }

// isToWeigh reports whether a settle must be weighed now. An urgent one needs no weighing.
func (s *settling) isToWeigh(now time.Time) bool {
	return !s.weighAt().After(now)
}

func (s *settling) weighAt() time.Time {
	if s.at.IsZero() || s.need == urgent {
		return never
	}
	return s.at
}

// isDue reports whether a batch settles, too.
func (s *settling) isDue() bool { return s.need != nothing || !s.at.IsZero() }

// classify notes how long a settle may wait that changes something. Far from every limit, few charges want the free
// room; freed, something went since a count was asked for.
func (s *settling) classify(weight ledger.Weight, freed bool) {
	switch {
	case weight.Far && !weight.Frees && !freed:
		s.need = idle
	case weight.Far:
		s.need, s.freed = lazy, true // an object that takes its place meanwhile doesn't put it off
	case !freed && weight.Waits:
		s.need = lazy
	default:
		s.need = urgent
	}
}

// begin notes that a count is asked for, or settled as it was weighed. Nothing is known to be missing in it.
func (s *settling) begin(now time.Time) { *s = settling{last: now, untaken: s.untaken} }
