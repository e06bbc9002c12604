// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Times are in milliseconds since 1970, and days are numbered since then.
const millisecondsOfDay = 24 * 60 * 60 * 1000

func dayOf(at int64) int32 { return int32(at / millisecondsOfDay) } //nolint:gosec // it lasts for millions of years

func startOf(day int32) int64 { return int64(day) * millisecondsOfDay }

// level is how much was used and reserved at a time.
type level struct {
	// amount is nil if the resource isn't counted any more.
	amount *resource.Quantity
	// at is zero if nothing is known.
	at int64
}

func later(a, b level) level {
	if a.at != b.at {
		if a.at > b.at {
			return a
		}
		return b
	}
	if a.amount == nil || b.amount != nil && a.amount.Cmp(*b.amount) < 0 {
		return b
	}
	return a
}

// day is what one resource has seen on one day.
type day struct {
	number int32
	// peak is the most that was observed, and peakAt when that was first; zero if nothing was observed.
	peak   resource.Quantity
	peakAt int64
	// last is what was observed last.
	last level
	// requests is how many didn't fit, and need the most that would have been used and reserved with one of them;
	// nil if none of them said.
	requests int64
	need     *resource.Quantity
}

// series is what one resource has seen.
//
// Invariant: days are in order, and before is what was observed last before them.
type series struct {
	before level
	days   []day
}

// day returns one day, which must not be kept.
func (s *series) day(number int32) *day {
	if last := len(s.days) - 1; last >= 0 && s.days[last].number == number {
		return &s.days[last]
	}
	at, found := slices.BinarySearchFunc(s.days, number, func(d day, number int32) int { return cmp.Compare(d.number, number) })
	if !found {
		s.days = slices.Insert(s.days, at, day{number: number})
	}
	return &s.days[at]
}

// hold notes what is used and reserved, and reports whether the day's peak has changed.
func (s *series) hold(at int64, amount resource.Quantity) (changed bool) {
	today := s.day(dayOf(at))
	changed = today.rise(amount, at)
	if at < today.last.at {
		return changed
	}
	if today.last.amount == nil {
		today.last.amount = &resource.Quantity{}
	}
	*today.last.amount = amount.DeepCopy()
	today.last.at = at
	return changed
}

// end notes that the resource isn't counted any more.
func (s *series) end(at int64) {
	if today := s.day(dayOf(at)); at >= today.last.at {
		today.last = level{at: at}
	}
}

// current returns what was observed last.
func (s *series) current() level {
	for i := len(s.days) - 1; i >= 0; i-- { //nolint:modernize // slices.Backward copies each day, on the way of each request
		if s.days[i].last.at != 0 {
			return s.days[i].last
		}
	}
	return s.before
}

func (d *day) rise(amount resource.Quantity, at int64) (risen bool) {
	if d.peakAt != 0 {
		switch amount.Cmp(d.peak) {
		case -1:
			return false
		case 0:
			if at >= d.peakAt {
				return false
			}
		}
	}
	d.peak, d.peakAt = amount.DeepCopy(), at
	return true
}

// miss notes requests that didn't fit.
func (d *day) miss(requests int64, need *resource.Quantity) {
	d.requests += requests
	d.need = larger(d.need, need)
}

// larger returns the larger amount, which is the caller's own; nil is less than all.
func larger(a, b *resource.Quantity) *resource.Quantity {
	if b == nil || a != nil && a.Cmp(*b) >= 0 {
		return a
	}
	own := b.DeepCopy()
	return &own
}

// add adds what another part knows.
func (s *series) add(other *series) {
	s.before = later(s.before, other.before.clone())
	for i := range other.days {
		from := &other.days[i]
		to := s.day(from.number)
		if from.peakAt != 0 {
			to.rise(from.peak, from.peakAt)
		}
		to.last = later(to.last, from.last.clone())
		to.miss(from.requests, from.need)
	}
}

func (l level) clone() level {
	if l.amount != nil {
		own := l.amount.DeepCopy()
		l.amount = &own
	}
	return l
}

// prune drops the days before the first one.
func (s *series) prune(first int32) {
	kept := 0
	for kept < len(s.days) && s.days[kept].number < first {
		s.before = later(s.before, s.days[kept].last)
		kept++
	}
	if kept > 0 {
		s.days = slices.Clone(s.days[kept:])
	}
}

// each calls a function with the peak of each day from the first to the last one, and when it was reached. A day
// begins with the level of the day before it. Days of which nothing is known are left out.
func (s *series) each(first, last int32, do func(number int32, peak resource.Quantity, at int64)) {
	carried, next := s.before, 0
	for ; next < len(s.days) && s.days[next].number < first; next++ {
		carried = later(carried, s.days[next].last)
	}
	for number := first; number <= last; number++ {
		var peak *resource.Quantity
		var at int64
		if carried.amount != nil {
			peak, at = carried.amount, startOf(number)
		}
		if next < len(s.days) && s.days[next].number == number {
			observed := &s.days[next]
			if observed.peakAt != 0 && (peak == nil || observed.peak.Cmp(*peak) > 0) {
				peak, at = &observed.peak, observed.peakAt
			}
			carried = later(carried, observed.last)
			next++
		}
		if peak != nil {
			do(number, *peak, at)
		}
	}
}
