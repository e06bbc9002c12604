// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/history"
	"github.com/sharedquota/shared-quota-operator/internal/metrics"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

func remembering() History {
	return History{Recorder: history.New("here"), Synced: func() bool { return true }}
}

// monthOf is a month in which a peak was the same on all days.
func monthOf(peak string) history.Seen {
	amount := resource.MustParse(peak)
	seen := history.Seen{Peaks: map[history.Span]resource.Quantity{}, Requests: map[history.Span]int64{}, At: time.Unix(1700000000, 0).UTC()}
	for _, span := range history.Spans() {
		seen.Peaks[span] = amount
	}
	for i := range seen.Trend {
		seen.Trend[i] = &amount
	}
	return seen
}

func TestTheHistoryOfAResourceTakes200Bytes(t *testing.T) {
	for name, test := range map[string]struct {
		peak, need, limit string
		requests          int64
		trend             bool
	}{
		"as usual":             {peak: "3", limit: "4", trend: true},
		"with refusals":        {peak: "3", need: "5", limit: "4", requests: 7, trend: true},
		"an odd memory":        {peak: "12345678901", need: "98765432101", limit: "20Gi", requests: 70},
		"nanocores":            {peak: "123456789n", need: "987654321n", limit: "1", requests: 123456789},
		"more than int64":      {peak: "123456789012345678901234567890", need: "1e40", limit: "1", requests: 1e18},
		"as long as they come": {peak: "1234567890123456789m", need: "9234567890123456789n", limit: "1", requests: 1e18},
	} {
		t.Run(name, func(t *testing.T) {
			seen := monthOf(test.peak)
			if test.need != "" {
				need := resource.MustParse(test.need)
				seen.Need = &need
				for _, span := range history.Spans() {
					seen.Requests[span] = test.requests
				}
			}
			shown := seenOf("requests.cpu", resource.MustParse(test.limit), seen)
			if size := sizeOf(shown); size > maxSeen {
				t.Errorf("it takes %d bytes", size)
			}
			t.Logf("%d bytes: %+v %+v", sizeOf(shown), shown.Peak, shown.Refused)
			if (shown.Trend != "") != test.trend {
				t.Errorf("the trend is %q", shown.Trend)
			}
			if peak := shown.Peak.Day; peak.Cmp(resource.MustParse(test.peak)) < 0 {
				t.Errorf("the peak is shown as less: %s", peak.String())
			}
		})
	}
}

func TestTheHistoryOfAResourceIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := func(name string) resource.Quantity {
			text := rapid.StringMatching(`[1-9][0-9]{0,29}(\.[0-9]{1,9})?(|n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e-9|e30|e60|e99)`).Draw(t, name)
			return resource.MustParse(text)
		}
		seen := monthOf("1")
		for _, span := range history.Spans() {
			seen.Peaks[span] = amount(string(span))
			seen.Requests[span] = rapid.Int64Range(1, 1<<62).Draw(t, "requests")
		}
		need := amount("need")
		seen.Need = &need
		shown := seenOf("requests.cpu", amount("limit"), seen)
		if size := sizeOf(shown); size > maxSeen {
			t.Fatalf("it takes %d bytes: %+v %+v", size, shown.Peak, shown.Refused)
		}
		peak, rounded := seen.Peaks[history.LastMonth], shown.Peak.Month
		if rounded.Cmp(peak) < 0 {
			t.Fatalf("%s is shown as %s", peak.String(), rounded.String())
		}
	})
}

func TestTrend(t *testing.T) {
	var peaks [history.Periods]*resource.Quantity
	for i, amount := range []string{"", "0", "1m", "1", "1001m", "4", "7", "7500m", "8", "8001m"} {
		if amount != "" {
			peak := resource.MustParse(amount)
			peaks[i] = &peak
		}
	}
	if diff := cmp.Diff("-01124788+", trendOf(resource.MustParse("8"), peaks)); diff != "" {
		t.Error(diff)
	}
	if got := trendOf(resource.MustParse("0"), peaks); got != "-0++++++++" {
		t.Errorf("of nothing: %s", got)
	}
}

func TestWhatAStatusShowsOfThePast(t *testing.T) {
	now := time.Unix(1700000000, 0)
	quota := builders.Quota("team").Hard("requests.cpu", "10").Obj()
	quota.UID, quota.Spec.Trial.Hard = "uid", corev1.ResourceList{"pods": resource.MustParse("5")}
	h := remembering()
	h.Recorder.Holds(now, "team", "uid", corev1.ResourceList{"requests.cpu": resource.MustParse("7"), "pods": resource.MustParse("3")})
	h.Recorder.Refused(now, history.Refusal{
		Quota: "team", UID: "uid", Namespace: "shop", Kind: "ReplicaSet", Name: "web", Needed: corev1.ResourceList{"requests.cpu": resource.MustParse("12")},
	})
	shown := h.of(quota, now)
	var lines []string
	for _, seen := range shown.history {
		line := fmt.Sprintf("%s: %s %s", seen.Resource, seen.Peak.Month.String(), seen.Trend)
		if seen.Refused != nil {
			line += fmt.Sprintf(" refused %d short %s", seen.Refused.Day, seen.Refused.Shortfall.String())
		}
		lines = append(lines, line)
	}
	if diff := cmp.Diff("pods: 3 ---------5; requests.cpu: 7 ---------6 refused 1 short 2", strings.Join(lines, "; ")); diff != "" {
		t.Errorf("history (-want,+got):\n%s", diff)
	}
	if diff := cmp.Diff(&quotav1.MostRefused{Namespace: "shop", Kind: "ReplicaSet", Name: "web", Requests: 1}, shown.mostRefused); diff != "" {
		t.Errorf("most refused (-want,+got):\n%s", diff)
	}
	if shown.trial == nil || len(shown.trial.WouldRefuse) > 0 || shown.since == nil {
		t.Errorf("trial %v, since %v", shown.trial, shown.since)
	}

	var stale quotav1.ClusterResourceQuotaStatus
	shown.into(&stale)
	quota.Status = stale
	unsynced := History{Recorder: history.New("new"), Synced: func() bool { return false }}
	if diff := cmp.Diff(shown, unsynced.of(quota, now), cmp.AllowUnexported(past{})); diff != "" {
		t.Errorf("a new leader that doesn't know the parts yet (-want,+got):\n%s", diff)
	}

	figures := metrics.Figures{}
	reader := &FiguresReader{FiguresParts: FiguresParts{Clock: fixed(now), History: h}}
	reader.remember(&figures, quota)
	if peak := figures.Peaks["week"]["requests.cpu"]; peak.String() != "7" || figures.Refused["day"]["requests.cpu"] != 1 ||
		len(figures.TrialRefused) != 1 {
		t.Errorf("metrics: %+v", figures)
	}
}

func TestARefusedNamespaceIsShownEveryTenSeconds(t *testing.T) {
	now := time.Unix(1700000000, 0)
	quota := builders.Quota("team").Hard("requests.cpu", "10").Obj()
	quota.UID = "uid"
	h, r := remembering(), &refusals{}
	refuse := func() {
		h.Recorder.Refused(now, history.Refusal{Quota: "team", UID: "uid", Namespace: "shop", Missing: []corev1.ResourceName{"requests.cpu"}})
	}
	refuse()
	if shown, again := r.of(h, quota, nil, now); shown["shop"] != 1 || again != 0 {
		t.Errorf("at once: %v, again in %s", shown, again)
	}
	now = now.Add(time.Second)
	refuse()
	if shown, again := r.of(h, quota, nil, now); shown["shop"] != 1 || again != 9*time.Second {
		t.Errorf("a second later: %v, again in %s", shown, again)
	}
	if shown, again := r.of(h, quota, nil, now.Add(9*time.Second)); shown["shop"] != 2 || again != 0 {
		t.Errorf("ten seconds later: %v, again in %s", shown, again)
	}
}

func fixed(at time.Time) *clocktesting.FakePassiveClock { return clocktesting.NewFakePassiveClock(at) }
