// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/history"
)

const (
	// historyEvery is the least time between two writes of a status or a view for nothing but its history.
	historyEvery = 10 * time.Second
	// maxSeen bounds what a resource's history takes as JSON, in bytes, besides the resource's name.
	maxSeen = 200
	// mostRequests is the most that is shown of a number of requests.
	mostRequests = 999_999_999
)

// History is what quotas have seen.
type History struct {
	Recorder *history.Recorder
	// Synced reports whether this replica knows all that others have published. Until then the history stays as it is.
	Synced func() bool
}

// past are the parts of a status that are history.
type past struct {
	trial       *quotav1.TrialStatus
	history     []quotav1.ResourceHistory
	since       *metav1.Time
	mostRefused *quotav1.MostRefused
	changes     []quotav1.SpecChange
}

// pastIn returns those of a status that was written.
func pastIn(status *quotav1.ClusterResourceQuotaStatus) past {
	return past{
		trial: status.Trial, history: status.History, since: status.HistorySince, mostRefused: status.MostRefused, changes: status.Changes,
	}
}

func (r past) into(status *quotav1.ClusterResourceQuotaStatus) {
	status.Trial, status.History, status.HistorySince = r.trial, r.history, r.since
	status.MostRefused, status.Changes = r.mostRefused, r.changes
}

// of returns what the status of a quota shows.
func (h History) of(quota *quotav1.ClusterResourceQuota, now time.Time) past {
	if !h.Synced() {
		return pastIn(&quota.Status)
	}
	h.Recorder.Judged(now, quota.Name, quota.UID, quota.Spec.Trial.Hard)
	summary := h.Recorder.Summary(now, quota.Name, quota.UID, quota.Spec.Trial.Hard)
	shown := past{
		history: historyOf(quota.Spec, summary), trial: trialOf(quota.Spec, summary),
		changes: history.AddChanges(quota.Status.Changes, h.Recorder.Changes(quota)),
	}
	if !summary.Since.IsZero() {
		since := seconds(summary.Since)
		shown.since = &since
	}
	if summary.Requests > 0 {
		most := summary.MostRefused
		shown.mostRefused = &quotav1.MostRefused{Namespace: most.Namespace, Kind: most.Kind, Name: most.Name, Requests: summary.Requests}
	}
	return shown
}

// modes returns the mode of each resource that isn't refused.
func modes(spec quotav1.ClusterResourceQuotaSpec) map[corev1.ResourceName]quotav1.EnforcementMode {
	var modes map[corev1.ResourceName]quotav1.EnforcementMode
	for name := range spec.Quota.Hard {
		if mode := definition.ModeOf(spec, name); mode != quotav1.EnforcementDeny {
			if modes == nil {
				modes = map[corev1.ResourceName]quotav1.EnforcementMode{}
			}
			modes[name] = mode
		}
	}
	return modes
}

func historyOf(spec quotav1.ClusterResourceQuotaSpec, summary history.Summary) []quotav1.ResourceHistory {
	limits := definition.Counted(spec)
	var all []quotav1.ResourceHistory
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if seen, known := summary.Resources[name]; known && (!seen.At.IsZero() || seen.Requests[history.LastMonth] > 0) {
			if seen.At.IsZero() { // no peak is known yet, and the API server wants a time
				seen.At = summary.Since
			}
			all = append(all, seenOf(name, limits[name], seen))
		}
	}
	return all
}

// seenOf returns what a status shows of a resource, within maxSeen.
func seenOf(name corev1.ResourceName, limit resource.Quantity, seen history.Seen) quotav1.ResourceHistory {
	shown := quotav1.ResourceHistory{
		Resource: name, Trend: trendOf(limit, seen.Trend),
		Peak: quotav1.PeakHistory{
			Day: seen.Peaks[history.Today], Week: seen.Peaks[history.LastWeek], Month: seen.Peaks[history.LastMonth], At: seconds(seen.At),
		},
	}
	if seen.Requests[history.LastMonth] > 0 {
		shown.Refused = &quotav1.RefusalHistory{
			Day:   min(seen.Requests[history.Today], mostRequests),
			Week:  min(seen.Requests[history.LastWeek], mostRequests),
			Month: min(seen.Requests[history.LastMonth], mostRequests), Shortfall: shortfall(seen.Need, limit),
		}
	}
	if sizeOf(shown) > maxSeen {
		shown.Trend = ""
	}
	if sizeOf(shown) > maxSeen {
		for _, amount := range []*resource.Quantity{&shown.Peak.Day, &shown.Peak.Week, &shown.Peak.Month} {
			*amount = rounded(*amount)
		}
		if shown.Refused != nil {
			shown.Refused.Shortfall = rounded(shown.Refused.Shortfall)
		}
	}
	return shown
}

// sizeOf is what a resource's history takes as JSON, besides the resource's name.
func sizeOf(shown quotav1.ResourceHistory) int {
	shown.Resource = ""
	text, err := json.Marshal(shown)
	if err != nil {
		return math.MaxInt // it is never so
	}
	return len(text)
}

// shortfall is how much the largest need is more than a limit; zero if no request said what it needs.
func shortfall(need *resource.Quantity, limit resource.Quantity) resource.Quantity {
	if need == nil {
		return resource.Quantity{}
	}
	short := need.DeepCopy()
	short.Sub(limit)
	return short
}

// rounded returns an amount rounded to three digits, away from zero, in the form that takes least.
func rounded(amount resource.Quantity) resource.Quantity {
	dec := amount.AsDec()
	unscaled, exponent := dec.UnscaledBig(), -int(dec.Scale())
	digits := len(unscaled.Text(10))
	if digits <= 3 {
		return amount
	}
	up := amount.DeepCopy()
	up.RoundUp(resource.Scale(exponent + digits - 4)) //nolint:gosec // as large as a quantity can be
	up.Format = resource.DecimalExponent
	return up
}

// trendOf writes peaks in eighths of a limit.
func trendOf(limit resource.Quantity, peaks [history.Periods]*resource.Quantity) string {
	trend := make([]byte, 0, history.Periods)
	for _, peak := range peaks {
		trend = append(trend, eighths(limit, peak))
	}
	return string(trend)
}

func eighths(limit resource.Quantity, peak *resource.Quantity) byte {
	switch {
	case peak == nil:
		return '-'
	case peak.Cmp(limit) > 0:
		return '+'
	case peak.Sign() <= 0:
		return '0'
	}
	for eighth := range int64(8) {
		eightfold, part := peak.DeepCopy(), limit.DeepCopy()
		if eightfold.Mul(8) && part.Mul(eighth) && eightfold.Cmp(part) <= 0 {
			return '0' + byte(eighth)
		}
	}
	return '8'
}

// trialOf returns what the limits of spec.trial would have refused; nil without them.
func trialOf(spec quotav1.ClusterResourceQuotaSpec, summary history.Summary) *quotav1.TrialStatus {
	if len(spec.Trial.Hard) == 0 || summary.TrialSince.IsZero() {
		return nil
	}
	shown := &quotav1.TrialStatus{Since: seconds(summary.TrialSince)}
	for _, name := range slices.Sorted(maps.Keys(spec.Trial.Hard)) {
		if seen, known := summary.Trial[name]; known {
			shown.WouldRefuse = append(shown.WouldRefuse, quotav1.TrialRefusals{
				Resource: name, Requests: seen.Requests, Last: seconds(seen.Last),
				LargestShortfall: shortfall(seen.Need, spec.Trial.Hard[name]),
			})
		}
	}
	return shown
}

// onlyRemembers reports whether two statuses differ in their history alone, and not in what somebody changed.
func onlyRemembers(before, current quotav1.ClusterResourceQuotaStatus) bool {
	if !apiequality.Semantic.DeepEqual(before.Changes, current.Changes) {
		return false
	}
	pastIn(&before).into(&current)
	return apiequality.Semantic.DeepEqual(before, current)
}

// refusals are the requests of today that didn't fit, as the views show them. They are read again when
// historyEvery has passed.
type refusals struct {
	// mu guards what follows.
	mu sync.Mutex
	// quota name -> what was read
	shown map[string]refusalsRead
}

type refusalsRead struct {
	uid types.UID
	at  time.Time
	// namespace name -> requests
	requests map[string]int64
}

// of returns those of a quota, and when they must be read again; zero if they are as they are.
func (r *refusals) of(
	from History, quota *quotav1.ClusterResourceQuota, views map[string]*quotav1.LocalResourceQuota, now time.Time,
) (requests map[string]int64, again time.Duration) {
	if !from.Synced() {
		shown := make(map[string]int64, len(views))
		for namespace, view := range views {
			shown[namespace] = view.Status.RefusedToday
		}
		return shown, troubledEvery
	}
	current := from.Recorder.RefusedToday(now, quota.Name, quota.UID)
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.shown[quota.Name]
	if known.uid == quota.UID && maps.Equal(known.requests, current) {
		return current, 0
	}
	if left := known.at.Add(historyEvery).Sub(now); known.uid == quota.UID && left > 0 {
		return known.requests, left
	}
	if r.shown == nil {
		r.shown = map[string]refusalsRead{}
	}
	r.shown[quota.Name] = refusalsRead{uid: quota.UID, at: now, requests: current}
	return current, 0
}

func (r *refusals) forget(quota string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.shown, quota)
}
