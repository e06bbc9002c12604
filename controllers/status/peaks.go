// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
)

const (
	day = 24 * time.Hour
	// weekDays and monthDays are the days of a week and of a month, today included.
	weekDays, monthDays = 7, 30
	// maxAhead is how far a peak may be ahead of the clock. Up to there a clock that went back, or the clock of the leader
	// before, explains it.
	maxAhead = day
	// peaksEvery is the least time between two writes of a status for nothing but its peaks.
	peaksEvery = 10 * time.Second
)

// peaks are the most that was used and reserved at once of each resource of one quota. They know no clock.
//
// The peaks of a resource are a staircase: the peak of each day of a month, but for the days whose peak a later day has
// reached. So the first peak of a span of days that ends today is the most of the span.
//
// Invariant: a resource has a peak at least. Its peaks are of different days, the oldest first, and each is less than
// the one before.
type peaks map[corev1.ResourceName][]quotav1.Peak

// next returns the peaks with those of a status, even an edited one, and with the amounts held now of the counted
// resources. Resources that aren't limited are left out. If the clock has gone back, now is as of the newest peak.
func (p peaks) next(now time.Time, status []quotav1.ResourcePeaks, hard, held corev1.ResourceList) peaks {
	next := maps.Clone(p)
	if next == nil {
		next = peaks{}
	}
	for _, one := range status {
		next[one.Resource] = slices.Concat(next[one.Resource], []quotav1.Peak{one.Month, one.Week, one.Day}, one.Others)
	}
	maps.DeleteFunc(next, func(name corev1.ResourceName, _ []quotav1.Peak) bool {
		_, limited := hard[name]
		return !limited
	})
	newest := next.newest(now)
	for name, amount := range held {
		next[name] = append(slices.Clip(next[name]), quotav1.Peak{Amount: amount, At: seconds(newest)})
	}
	for name, all := range next {
		if next[name] = staircase(all, newest); len(next[name]) == 0 {
			delete(next, name)
		}
	}
	return next
}

// newest returns the time of the newest peak if that is after now, and not by more than maxAhead.
func (p peaks) newest(now time.Time) time.Time {
	newest := now
	for _, all := range p {
		for i := range all {
			if at := all[i].At.Time; at.After(newest) && !at.After(now.Add(maxAhead)) {
				newest = at
			}
		}
	}
	return newest
}

// stored returns the peaks as a status has them.
func (p peaks) stored(now time.Time, surged peaks) []quotav1.ResourcePeaks {
	if len(p) == 0 {
		return nil
	}
	today := dayOf(p.newest(now))
	all := make([]quotav1.ResourcePeaks, 0, len(p))
	for _, name := range slices.Sorted(maps.Keys(p)) {
		within := func(days int64) int {
			return slices.IndexFunc(p[name], func(peak quotav1.Peak) bool { return today-dayOf(peak.At.Time) < days })
		}
		week, last := within(weekDays), within(1)
		stored := quotav1.ResourcePeaks{Resource: name, Month: p[name][0]}
		if len(surged[name]) > 0 {
			stored.Surge = surged[name][0]
		}
		for i, peak := range p[name] {
			if i == week {
				stored.Week = peak
			}
			if i == last {
				stored.Day = peak
			}
			if i != 0 && i != week && i != last {
				stored.Others = append(stored.Others, peak)
			}
		}
		all = append(all, stored)
	}
	return all
}

// surgesIn returns the peaks of surge among those of a status.
func surgesIn(status []quotav1.ResourcePeaks) (surges []quotav1.ResourcePeaks) {
	for _, one := range status {
		if !one.Surge.At.IsZero() {
			surges = append(surges, quotav1.ResourcePeaks{Resource: one.Resource, Month: one.Surge})
		}
	}
	return surges
}

// staircase makes a staircase of any peaks, in any order. Those from after the newest time are as of that.
func staircase(all []quotav1.Peak, newest time.Time) []quotav1.Peak {
	all = slices.Clone(all)
	for i := range all {
		if all[i].At.After(newest) {
			all[i].At = seconds(newest)
		}
	}
	slices.SortStableFunc(all, func(a, b quotav1.Peak) int { return a.At.Compare(b.At.Time) })
	var stairs []quotav1.Peak
	for _, one := range all {
		if one.Amount.Sign() < 0 || dayOf(newest)-dayOf(one.At.Time) >= monthDays {
			continue
		}
		for len(stairs) > 0 && reaches(one, stairs[len(stairs)-1]) {
			stairs = stairs[:len(stairs)-1]
		}
		if len(stairs) == 0 || dayOf(stairs[len(stairs)-1].At.Time) != dayOf(one.At.Time) {
			stairs = append(stairs, one)
		}
	}
	return stairs
}

// reaches reports whether a peak takes the place of one before it. Of the same day, the first that was as high stays.
func reaches(peak, before quotav1.Peak) bool {
	compared := peak.Amount.Cmp(before.Amount)
	return compared > 0 || compared == 0 && dayOf(peak.At.Time) != dayOf(before.At.Time)
}

// dayOf numbers the days in UTC.
func dayOf(at time.Time) int64 { return at.Unix() / int64(day/time.Second) }

// tomorrow is when the next day begins: the peaks of a quota in which nothing changes are others then.
func tomorrow(now time.Time) time.Time { return now.UTC().Truncate(day).Add(day) }

// heldIn returns the used and reserved amount of each resource that is limited and counted.
//
// No object is in it twice, although the ledger has one twice that another replica granted from escrow, and that was
// counted before the grant was recorded: a Balance has it as used alone. Until the grant is recorded, up to two seconds
// later, an object that isn't counted is missing. The ledger is a moment older than the count, so it may have an object
// that has just gone beside the one in its place; then the sum is bounded by hard, as Torn explains, if the quota
// refuses requests above it. Otherwise a peak may be too high by the objects that came and went in that moment. Objects
// that came and went between two looks, 50 milliseconds, aren't seen at all.
func heldIn(spec quotav1.ClusterResourceQuotaSpec, figures counting.Balance) corev1.ResourceList {
	enforced, held := definition.Enforced(spec), corev1.ResourceList{}
	for _, name := range figures.Complete {
		if _, limited := spec.Quota.Hard[name]; !limited {
			continue
		}
		used, limit := figures.Used[name], enforced[name]
		sum := used.DeepCopy()
		sum.Add(figures.Reserved[name])
		if _, refuses := enforced[name]; refuses && used.Cmp(limit) <= 0 && sum.Cmp(limit) > 0 {
			sum = limit.DeepCopy()
		}
		held[name] = sum
	}
	return held
}

// onlyPeaks reports whether two statuses differ in nothing but their peaks.
func onlyPeaks(before, current quotav1.ClusterResourceQuotaStatus) bool {
	if apiequality.Semantic.DeepEqual(before.Peaks, current.Peaks) {
		return false
	}
	before.Peaks = current.Peaks
	return apiequality.Semantic.DeepEqual(before, current)
}
