// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

const (
	team = "team"
	uid  = types.UID("uid")
	cpu  = corev1.ResourceName("requests.cpu")
)

// morning is at ten on day 20000.
func morning() time.Time { return time.UnixMilli(startOf(20000)).UTC().Add(10 * time.Hour) }

func cpus(amount string) corev1.ResourceList {
	return corev1.ResourceList{cpu: resource.MustParse(amount)}
}

func refusal(namespace, name, needed string) Refusal {
	return Refusal{Quota: team, UID: uid, Namespace: namespace, Kind: "ReplicaSet", Name: name, Needed: cpus(needed), Hard: cpus("10")}
}

func summaryOf(r *Recorder, at time.Time) Summary { return r.Summary(at, team, uid, nil) }

// peaks returns those of the day, the week and the month, in one line.
func peaks(seen Seen) string {
	var parts []string
	for _, span := range Spans() {
		peak, known := seen.Peaks[span]
		if !known {
			parts = append(parts, "-")
			continue
		}
		parts = append(parts, peak.String())
	}
	return strings.Join(parts, " ")
}

func requests(seen Seen) string {
	return fmt.Sprint(seen.Requests[Today], seen.Requests[LastWeek], seen.Requests[LastMonth])
}

func trend(seen Seen) string {
	parts := make([]string, 0, Periods)
	for _, peak := range seen.Trend {
		if peak == nil {
			parts = append(parts, "-")
		} else {
			parts = append(parts, peak.String())
		}
	}
	return strings.Join(parts, " ")
}

func TestPeaks(t *testing.T) {
	days := func(n float64) time.Time { return morning().Add(time.Duration(n * 24 * float64(time.Hour))) }
	type held struct {
		at     time.Time
		amount string
	}
	for name, test := range map[string]struct {
		held  []held
		now   time.Time
		peaks string
		at    time.Time
		trend string
	}{
		"nothing is known": {now: days(0), peaks: "- - -", trend: "- - - - - - - - - -"},
		"the most of the day": {
			held: []held{{days(0), "3"}, {days(0.1), "7"}, {days(0.2), "2"}}, now: days(0.3),
			peaks: "7 7 7", at: days(0.1), trend: "- - - - - - - - - 7",
		},
		"it is reached twice": {
			held: []held{{days(0), "7"}, {days(0.1), "1"}, {days(0.2), "7"}}, now: days(0.3),
			peaks: "7 7 7", at: days(0), trend: "- - - - - - - - - 7",
		},
		"a day begins with the level at midnight": {
			held: []held{{days(0), "7"}, {days(0.1), "5"}, {days(1), "2"}}, now: days(1.1),
			peaks: "5 7 7", at: days(0), trend: "- - - - - - - - - 7",
		},
		"nothing happens for days": {
			held: []held{{days(0), "7"}, {days(0.1), "5"}}, now: days(8),
			peaks: "5 5 7", at: days(0), trend: "- - - - - - - 7 5 5",
		},
		"a level is older than what is kept": {
			held: []held{{days(0), "7"}, {days(0.1), "5"}}, now: days(50),
			peaks: "5 5 5", at: days(50 - 29).Add(-10 * time.Hour), trend: "5 5 5 5 5 5 5 5 5 5",
		},
		"the clock of a caller is late": {
			held: []held{{days(1), "2"}, {days(0), "7"}}, now: days(1.1),
			peaks: "7 7 7", at: days(0), trend: "- - - - - - - - - 7",
		},
		"the resource isn't counted any more": {
			held: []held{{days(0), "7"}, {days(0.1), ""}}, now: days(8),
			peaks: "- - 7", at: days(0), trend: "- - - - - - - 7 - -",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := New("a")
			for _, held := range test.held {
				amounts := corev1.ResourceList{}
				if held.amount != "" {
					amounts = cpus(held.amount)
				}
				r.Holds(held.at, team, uid, amounts)
			}
			summaryOf(r, test.now)
			r.Sweep(test.now)
			seen := summaryOf(r, test.now).Resources[cpu]
			if diff := cmp.Diff(test.peaks, peaks(seen)); diff != "" {
				t.Errorf("peaks (-want,+got):\n%s", diff)
			}
			if test.trend != trend(seen) && (test.trend != "- - - - - - - - - -" || len(test.held) > 0) {
				t.Errorf("trend %s, want %s", trend(seen), test.trend)
			}
			if !seen.At.Equal(test.at) {
				t.Errorf("at %s, want %s", seen.At, test.at)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	r := New("a")
	r.Refused(morning(), refusal("shop", "web", "12"))
	r.Refused(morning(), refusal("shop", "web", "11"))
	r.Refused(morning(), Refusal{Quota: team, UID: uid, Namespace: "blog", Missing: []corev1.ResourceName{cpu}})
	later := morning().Add(7 * 24 * time.Hour)
	r.Refused(later, refusal("blog", "api", "10500m"))
	summary := summaryOf(r, later)
	if got := requests(summary.Resources[cpu]); got != "1 1 4" {
		t.Errorf("requests of the day, the week and the month: %s", got)
	}
	if need := summary.Resources[cpu].Need; need == nil || need.String() != "12" {
		t.Errorf("the largest need is %v", need)
	}
	if diff := cmp.Diff(Workload{"shop", "ReplicaSet", "web"}, summary.MostRefused); diff != "" || summary.Requests != 2 {
		t.Errorf("%d of (-want,+got):\n%s", summary.Requests, diff)
	}
	if diff := cmp.Diff(map[string]int64{"blog": 1}, summary.RefusedToday); diff != "" {
		t.Errorf("today (-want,+got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int64(nil), r.RefusedToday(later.Add(24*time.Hour), team, uid)); diff != "" {
		t.Errorf("a day later (-want,+got):\n%s", diff)
	}
	if got := requests(summaryOf(r, later.Add(30*24*time.Hour)).Resources[cpu]); got != "0 0 0" {
		t.Errorf("requests after a month: %s", got)
	}
}

func TestATrialBeginsAnewWithOtherLimits(t *testing.T) {
	r := New("a")
	r.Judged(morning(), team, uid, cpus("5"))
	tried := refusal("shop", "web", "7")
	tried.Tried, tried.Trial = true, cpus("5")
	r.Refused(morning().Add(time.Minute), tried)
	summary := r.Summary(morning().Add(time.Hour), team, uid, cpus("5"))
	seen := summary.Trial[cpu]
	if !summary.TrialSince.Equal(morning()) || seen.Requests != 1 || seen.Need.String() != "7" || !seen.Last.Equal(morning().Add(time.Minute)) {
		t.Errorf("since %s: %+v", summary.TrialSince, seen)
	}
	if requests(summary.Resources[cpu]) != "0 0 0" || summary.Requests != 0 || len(summary.RefusedToday) != 0 {
		t.Error("what is tried counts as refused")
	}
	if summary := r.Summary(morning(), team, uid, cpus("6")); !summary.TrialSince.IsZero() || len(summary.Trial) > 0 {
		t.Errorf("other limits: %+v", summary)
	}
}

func TestAnotherQuotaOfThatNameBeginsAnew(t *testing.T) {
	r := New("a")
	r.Holds(morning(), team, uid, cpus("7"))
	r.Refused(morning(), refusal("shop", "web", "12"))
	if other := r.Summary(morning(), team, "other", nil); len(other.Resources) > 0 || other.Requests > 0 {
		t.Errorf("it has %+v", other)
	}
	r.Forget(team, "other")
	if summary := summaryOf(r, morning()); len(summary.Resources) == 0 || summary.Requests != 1 {
		t.Errorf("once another one was deleted, the quota has %+v", summary)
	}
	r.Forget(team, uid)
	if summary := summaryOf(r, morning()); len(summary.Resources) > 0 {
		t.Errorf("a deleted quota has %+v", summary)
	}
}

// A quota may have more namespaces than there is room for.
func TestTheNamespacesWithTheMostAndTheLatestRefusalsAreKept(t *testing.T) {
	r, often := New("a"), morning()
	for i := range 2 * mostNamespaces {
		r.Refused(often, refusal(fmt.Sprintf("once-%04d", i), "web", "12"))
		if i >= mostNamespaces-4 && i < mostNamespaces+4 {
			r.Refused(often, refusal(fmt.Sprintf("often-%d", i%4), "web", "12"))
		}
	}
	kept := r.RefusedToday(often, team, uid)
	if len(kept) != mostNamespaces {
		t.Errorf("%d namespaces are kept", len(kept))
	}
	for namespace, want := range map[string]int64{
		"often-0": 2, "often-1": 2, "often-2": 2, "often-3": 2, fmt.Sprintf("once-%04d", 2*mostNamespaces-1): 1,
	} {
		if kept[namespace] != want {
			t.Errorf("%s has %d, want %d", namespace, kept[namespace], want)
		}
	}
	r.full.Store(true)
	r.Refused(often, refusal("late", "web", "12"))
	if kept = r.RefusedToday(often, team, uid); len(kept) != mostNamespaces || kept["late"] != 1 {
		t.Errorf("without room for more there are %d namespaces, and the latest has %d", len(kept), kept["late"])
	}
	part := newRecord()
	for i := range mostNamespaces - 4 {
		part.addIn(dayOf(often.UnixMilli()), fmt.Sprintf("elsewhere-%d", i), 2)
	}
	own := r.own[key{team, uid}].record
	own.add(part)
	own.settle()
	if len(own.namespaces) != mostNamespaces || own.namespaces["often-0"] != 2 || own.namespaces["late"] != 0 {
		t.Errorf("with those of another part there are %d: %v", len(own.namespaces), own.namespaces)
	}
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	r, long := New("a"), strings.Repeat("x", 100000)
	for i := range 3 * mostQuotas {
		r.Holds(morning(), fmt.Sprintf("quota-%d", i), uid, cpus("1"))
	}
	r.Holds(morning(), long, uid, cpus("1"))
	if len(r.own) > mostQuotas {
		t.Errorf("%d quotas", len(r.own))
	}
	r = New("a")
	for i := range 3 * mostResources {
		name := fmt.Sprintf("n%d", i)
		amounts := corev1.ResourceList{corev1.ResourceName("count/" + name): resource.MustParse("1")}
		r.Holds(morning(), team, uid, amounts)
		tried := Refusal{Quota: team, UID: uid, Tried: true, Trial: amounts, Needed: amounts}
		r.Refused(morning(), tried)
		tried.Trial = cpus("1")
		r.Refused(morning(), tried)
		r.Refused(morning(), refusal(name+long, name+long, "12"))
		r.Refused(morning(), refusal(name, name, "12"))
	}
	r.Holds(morning(), team, uid, corev1.ResourceList{corev1.ResourceName(long): resource.MustParse("1")})
	kept := r.own[key{team, uid}].record
	if size := kept.size(); size > mostResources*2+mostNamespaces+mostWorkloads+mostTrials*(1+mostResources)+1 {
		t.Errorf("%d entries are kept", size)
	}
	for namespace := range kept.namespaces {
		if len(namespace) > longestName {
			t.Errorf("a name of %d bytes is kept", len(namespace))
		}
	}
	encoded, _, err := r.Publish()
	if err != nil || len(encoded) > 200<<10 {
		t.Errorf("it is published in %d bytes: %v", len(encoded), err)
	}
}

func TestTooMuchIsKeptForFewerDays(t *testing.T) {
	r := New("a")
	const quotas = 400
	for number := range 2 * Days {
		for i := range quotas {
			amounts := corev1.ResourceList{}
			for j := range 5 {
				amounts[corev1.ResourceName(fmt.Sprintf("r%d", j))] = resource.MustParse(fmt.Sprint(number*i + j))
			}
			r.Holds(morning().AddDate(0, 0, number), fmt.Sprint("quota-", i), uid, amounts)
		}
		r.Sweep(morning().AddDate(0, 0, number))
	}
	size := 0
	for _, own := range r.own {
		size += own.record.size()
	}
	if size > mostEntries || size < mostEntries/3 {
		t.Errorf("%d entries are kept", size)
	}
	encoded, _, err := r.Publish()
	if err != nil || len(encoded) > MaxEncoded {
		t.Errorf("%d bytes: %v", len(encoded), err)
	}
	t.Logf("%d entries in %d bytes", size, len(encoded))
}

func TestTheWorkloadsOfMostRequestsAreFoundAmongMany(t *testing.T) {
	r := New("a")
	for i := range 3000 {
		r.Refused(morning(), refusal("shop", fmt.Sprint("once-", i), "12"))
		if i%3 == 0 {
			r.Refused(morning(), refusal("shop", "often", "12"))
		}
	}
	summary := summaryOf(r, morning())
	if summary.MostRefused.Name != "often" || summary.Requests > 1000 || summary.Requests < 1000-4000/mostWorkloads {
		t.Errorf("%d of %v", summary.Requests, summary.MostRefused)
	}
}

func BenchmarkHolds(b *testing.B) {
	for _, resources := range []int{1, 5, 20} {
		b.Run(fmt.Sprintf("%d resources", resources), func(b *testing.B) {
			r, amounts := New("a"), [2]corev1.ResourceList{{}, {}}
			for i := range resources {
				name := corev1.ResourceName(fmt.Sprintf("requests.example.com/r%d", i))
				amounts[0][name], amounts[1][name] = resource.MustParse("1500m"), resource.MustParse("3")
			}
			at := morning()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				at = at.Add(time.Millisecond)
				r.Holds(at, team, uid, amounts[i%2])
			}
		})
	}
}

func BenchmarkRefused(b *testing.B) {
	r, one := New("a"), refusal("shop", "web", "12")
	b.ReportAllocs()
	for b.Loop() {
		r.Refused(morning(), one)
	}
}

func BenchmarkSummary(b *testing.B) {
	r := New("a")
	for number := range Days {
		for i := range 5 {
			r.Holds(morning().AddDate(0, 0, number), team, uid, corev1.ResourceList{corev1.ResourceName(fmt.Sprint("r", i)): resource.MustParse("3")})
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		summaryOf(r, morning().AddDate(0, 0, Days))
	}
}
