// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// Span is so many of the last days, today included.
type Span string

// The spans.
const (
	Today     Span = "day"
	LastWeek  Span = "week"
	LastMonth Span = "month"
)

// Spans returns them all.
func Spans() []Span { return []Span{Today, LastWeek, LastMonth} }

func (s Span) days() int32 {
	switch s {
	case Today:
		return 1
	case LastWeek:
		return 7
	default:
		return Days
	}
}

// Periods is how many periods a trend has.
const Periods = Days / periodDays

// Seen is what one resource has seen.
type Seen struct {
	// Peaks are the most that was used and reserved at once; none if nothing is known of the span.
	Peaks map[Span]resource.Quantity
	// At is when the peak of the month was reached first.
	At time.Time
	// Requests are how many didn't fit.
	Requests map[Span]int64
	// Need is the most that would have been used and reserved with one of those of the month; nil if none of them said.
	Need *resource.Quantity
	// Trend has the peaks of periods of three days, the oldest first; nil for one of which nothing is known.
	Trend [Periods]*resource.Quantity
}

// Workload is a controller of objects; only the namespace if there is none.
type Workload struct{ Namespace, Kind, Name string }

// Tried is what a limit that is tried would have refused.
type Tried struct {
	Requests int64
	// Need is the most that would have been used and reserved with one of them; nil if none of them said.
	Need *resource.Quantity
	Last time.Time
}

// Summary is what all parts know of a quota.
type Summary struct {
	// Since is when the first of it was noted.
	Since     time.Time
	Resources map[corev1.ResourceName]Seen
	// MostRefused is the workload of which most requests didn't fit in the month, and Requests how many; zero if all fitted.
	MostRefused Workload
	Requests    int64
	// TrialSince is when the trial was first judged; zero if it wasn't.
	TrialSince time.Time
	Trial      map[corev1.ResourceName]Tried
	// RefusedToday are today's requests that didn't fit.
	// namespace name -> number
	RefusedToday map[string]int64
}

// Summary returns what is known of a quota of which the limits of spec.trial are these. Whoever asks knows that there is
// such a quota, so that it isn't forgotten.
func (r *Recorder) Summary(now time.Time, quota string, uid types.UID, trial corev1.ResourceList) Summary {
	at := now.UnixMilli()
	if of := r.entry(quota, uid); of != nil {
		of.mu.Lock()
		of.record.touch(at)
		of.mu.Unlock()
	}
	// The trial that is asked about counts even if others began later, of which a record keeps but a few.
	all, asked, digest := newRecord(), newRecord(), digestOf(trial)
	r.each(quota, uid, func(known *record) {
		all.add(known)
		if of := known.trials[digest]; of != nil {
			asked.addTrial(digest, of)
		}
	})
	all.trials = asked.trials
	return all.summary(at, trial)
}

// RefusedToday returns how many of today's requests didn't fit, for each namespace.
func (r *Recorder) RefusedToday(now time.Time, quota string, uid types.UID) map[string]int64 {
	var all map[string]int64
	r.each(quota, uid, func(known *record) {
		for namespace, requests := range known.refusedOn(dayOf(now.UnixMilli())) {
			if all == nil {
				all = map[string]int64{}
			}
			all[namespace] += requests
		}
	})
	return all
}

func (r *record) refusedOn(today int32) map[string]int64 {
	if r.today != today {
		return nil
	}
	return r.namespaces
}

func (r *record) summary(at int64, trial corev1.ResourceList) Summary {
	today := dayOf(at)
	r.prune(today, Days)
	summary := Summary{
		Since: timeOf(r.since), Resources: make(map[corev1.ResourceName]Seen, len(r.series)), RefusedToday: r.refusedOn(today),
	}
	for name, of := range r.series {
		summary.Resources[name] = of.seen(today)
	}
	workloads := tally{}
	for _, of := range r.workloads {
		workloads.add(of)
	}
	most, requests := workloads.top()
	summary.MostRefused, summary.Requests = Workload{most.namespace, most.kind, most.name}, requests
	if of := r.trials[digestOf(trial)]; of != nil && len(trial) > 0 {
		summary.TrialSince = timeOf(of.since)
		summary.Trial = make(map[corev1.ResourceName]Tried, len(of.resources))
		for name, seen := range of.resources {
			summary.Trial[name] = Tried{Requests: seen.requests, Need: seen.need, Last: timeOf(seen.last)}
		}
	}
	return summary
}

func (s *series) seen(today int32) Seen {
	seen := Seen{Peaks: map[Span]resource.Quantity{}, Requests: map[Span]int64{}}
	first := today - Days + 1
	s.each(first, today, func(number int32, peak resource.Quantity, at int64) {
		for _, span := range Spans() {
			if known, ok := seen.Peaks[span]; number > today-span.days() && (!ok || peak.Cmp(known) > 0) {
				seen.Peaks[span] = peak
				if span == LastMonth {
					seen.At = timeOf(at)
				}
			}
		}
		period := &seen.Trend[(number-first)/periodDays]
		*period = larger(*period, &peak)
	})
	for i := range s.days {
		of := &s.days[i]
		for _, span := range Spans() {
			if of.number > today-span.days() && of.number <= today {
				seen.Requests[span] += of.requests
			}
		}
		seen.Need = larger(seen.Need, of.need)
	}
	return seen
}

func timeOf(at int64) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return time.UnixMilli(at).UTC()
}
