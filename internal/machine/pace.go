// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import "time"

// never is after everything.
var never = time.Unix(1<<40, 0) //nolint:gochecknoglobals // a constant, which Go has no literal for

// situation has the facts that decide when the next batch is due.
type situation struct {
	now time.Time
	// lastBatch is when the last batch began or, where others write too, ended;
	// lastWrite how long its write took; lastCharges how many charges had arrived for
	// it.
	lastBatch   time.Time
	lastWrite   time.Duration
	lastCharges int
	// charges and edits have arrived since.
	charges, edits int
	// settle is how long the settle may wait.
	settle need
	// freed: the settle frees something, far from every limit.
	freed bool
	// records: the ledger must be written, because charges were granted without a write.
	records bool
	// parked: charges wait for room; the first of them must be answered at patience.
	parked   bool
	patience time.Time
	// fresher: another ledger was seen since the last batch, in which there may be room.
	fresher bool
	// contended: another replica wrote a moment ago.
	contended bool
}

// nextBatch returns when the next batch is due; never, if nothing waits.
//
// It keeps batches apart under load, and makes no charge wait without a reason. A
// client that charges one object after the other comes back soon after a batch
// was answered: when as many charges wait as the last batch had, no more are
// expected, and the batch is due, though not sooner than its size allows. An edit
// or an urgent settle may make room for another replica's charges; it is due at
// half the pace.
//
// If another replica writes too, the pause between batches of charges is twice as long, so
// that both write the ledger no more often than one alone. Edits and settles keep their own
// pauses. After each batch comes a pause that is twice as long as its write took: in it a
// replica that was too late can read and write. A busy replica, which
// always knows its own last write first, once kept the leader from its turn until
// hundreds of reservations were unsettled. A deposed leader that went on settling, with
// hardly a charge of its own, once kept the charges of all others waiting for ten seconds.
// Only a lone client's charge needs no such pause: it comes back no sooner anyway.
func (o Options) nextBatch(s situation) time.Time {
	pace, turn := o.beside(s)
	full := s.lastBatch.Add(max(pace, turn))
	short := s.lastBatch.Add(max(min(pace/2, o.PaceEach*time.Duration(max(s.lastCharges-1, 0))), turn))
	due := never
	switch changes := s.edits > 0 || s.settle == urgent; {
	case s.charges > 0 && s.charges >= s.lastCharges:
		due = short
	case changes && s.parked:
		due = short // it may make room for those
	case s.charges > 0:
		due = full
	case changes:
		due = s.lastBatch.Add(max(o.Pace/2, turn))
	case s.settle == lazy:
		due = s.lastBatch.Add(o.laziness(s))
	case s.settle == idle:
		due = s.lastBatch.Add(idlePaces * o.Pace)
	}
	if s.parked {
		due = earlier(due, s.patience)
		if s.fresher {
			due = earlier(due, short)
		}
	}
	return due
}

// beside returns the pace, and the turn that is left to other replicas.
func (o Options) beside(s situation) (pace, turn time.Duration) {
	isLone := s.charges > 0 && s.lastCharges <= 1
	switch {
	case !s.contended:
		return o.Pace, 0
	case isLone:
		return 2 * o.Pace, 0
	default:
		return 2 * o.Pace, min(2*s.lastWrite, maxTurn)
	}
}

// laziness is how long a settle waits that may wait for other changes.
func (o Options) laziness(s situation) time.Duration {
	if s.freed {
		return freedPaces * o.Pace
	}
	return lazyPaces * o.Pace
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// relief counts the charges that waited for room and were granted, in the interval under way and the one before it.
type relief struct {
	since       time.Time
	now, before int
}

func (r *relief) roll(now time.Time) {
	switch passed := now.Sub(r.since); {
	case passed >= 2*reliefFor:
		*r = relief{since: now}
	case passed >= reliefFor:
		*r = relief{since: r.since.Add(reliefFor), before: r.now}
	}
}

func (r *relief) note(now time.Time) {
	r.roll(now)
	r.now++
}

func (r *relief) lately(now time.Time) int {
	r.roll(now)
	return r.now + r.before
}
