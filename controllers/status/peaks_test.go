// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// noon of a day.
func noon(number int) time.Time { return time.Date(2026, 10, number, 12, 0, 0, 0, time.UTC) }

func podsHeld(amount int64) corev1.ResourceList {
	return corev1.ResourceList{"pods": *resource.NewQuantity(amount, resource.DecimalSI)}
}

// peaksText puts a status's peaks into one line, as in "pods 3@5 3@5 4@1 [4@2]", with days of the month.
func peaksText(all []quotav1.ResourcePeaks) string {
	text := func(peak quotav1.Peak) string {
		if peak.At.IsZero() {
			return "?"
		}
		return fmt.Sprintf("%s@%d", peak.Amount.String(), peak.At.UTC().Day())
	}
	lines := make([]string, 0, len(all))
	for _, one := range all {
		line := fmt.Sprintf("%s %s %s %s", one.Resource, text(one.Day), text(one.Week), text(one.Month))
		for _, other := range one.Others {
			line += " +" + text(other)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

func TestThePeaksOfDays(t *testing.T) {
	type seen struct {
		at   time.Time
		held corev1.ResourceList
	}
	for name, test := range map[string]struct {
		seen []seen
		at   time.Time
		want string
	}{
		"nothing was seen": {at: noon(1)},
		"nothing was used": {seen: []seen{{noon(1), podsHeld(0)}}, at: noon(1), want: "pods 0@1 0@1 0@1"},
		"the most of a day stays": {
			seen: []seen{{noon(1), podsHeld(3)}, {noon(1).Add(time.Hour), podsHeld(5)}, {noon(1).Add(2 * time.Hour), podsHeld(4)}},
			at:   noon(1), want: "pods 5@1 5@1 5@1",
		},
		"another day has its own": {seen: []seen{{noon(1), podsHeld(5)}, {noon(2), podsHeld(4)}}, at: noon(2), want: "pods 4@2 5@1 5@1"},
		"a week later": {
			seen: []seen{{noon(1), podsHeld(5)}, {noon(2), podsHeld(4)}, {noon(8), podsHeld(3)}}, at: noon(8), want: "pods 3@8 4@2 5@1",
		},
		"thirty days later": {
			seen: []seen{{noon(1), podsHeld(9)}, {noon(2), podsHeld(5)}, {noon(20), podsHeld(4)}, {noon(31), podsHeld(3)}},
			at:   noon(31), want: "pods 3@31 3@31 5@2 +4@20",
		},
		"a later day with the same peak takes its place": {
			seen: []seen{{noon(1), podsHeld(5)}, {noon(3), podsHeld(5)}}, at: noon(3), want: "pods 5@3 5@3 5@3",
		},
		"nothing is known of today": {seen: []seen{{noon(1), podsHeld(5)}, {noon(2), nil}}, at: noon(2), want: "pods ? 5@1 5@1"},
		"a month without a look":    {seen: []seen{{noon(1), podsHeld(5)}, {noon(31), nil}}, at: noon(31)},
		"the clock goes back, and nothing is lost": {
			seen: []seen{{noon(2), podsHeld(2)}, {noon(1).Add(13 * time.Hour), podsHeld(3)}}, at: noon(1).Add(13 * time.Hour),
			want: "pods 3@2 3@2 3@2",
		},
		"the clock goes back by a month": {
			seen: []seen{{noon(31), podsHeld(2)}, {noon(1), podsHeld(1)}}, at: noon(1), want: "pods 2@1 2@1 2@1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var known peaks
			for _, one := range test.seen {
				known = known.next(one.at, nil, podsHeld(10), one.held)
			}
			if diff := cmp.Diff(test.want, peaksText(known.stored(test.at, nil))); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func TestAPeakIsOfWhenItWasSoFirst(t *testing.T) {
	var known peaks
	for _, amount := range []int64{1, 3, 2, 3} {
		known = known.next(noon(1).Add(time.Duration(amount)*time.Minute), nil, podsHeld(10), podsHeld(amount))
	}
	if at := known.stored(noon(1), nil)[0].Month.At; !at.Equal(&metav1.Time{Time: noon(1).Add(3 * time.Minute)}) {
		t.Errorf("got %s", at)
	}
}

// Every client that may write a status may have written it.
func TestPeaksOfAnyStatusAreTakenForWhatTheyCanBe(t *testing.T) {
	peak := func(amount string, at time.Time) quotav1.Peak {
		return quotav1.Peak{Amount: resource.MustParse(amount), At: metav1.NewTime(at)}
	}
	var many []quotav1.Peak
	for i := range 10_000 {
		many = append(many, peak(fmt.Sprint(10_000-i), noon(31).Add(-time.Duration(10_000-i)*time.Hour)))
	}
	for name, test := range map[string]struct {
		status quotav1.ResourcePeaks
		want   string
	}{
		"nothing":                  {want: "pods 1@31 1@31 1@31"},
		"less than nothing":        {status: quotav1.ResourcePeaks{Month: peak("-5", noon(30))}, want: "pods 1@31 1@31 1@31"},
		"of a time long ago":       {status: quotav1.ResourcePeaks{Month: peak("5", time.Unix(-1e9, 0))}, want: "pods 1@31 1@31 1@31"},
		"of a time that is far":    {status: quotav1.ResourcePeaks{Day: peak("5", noon(31).AddDate(1000, 0, 0))}, want: "pods 5@31 5@31 5@31"},
		"of a leader's fast clock": {status: quotav1.ResourcePeaks{Day: peak("5", noon(32).Add(-time.Minute))}, want: "pods 5@1 5@1 5@1"},
		"in no order": {
			status: quotav1.ResourcePeaks{Day: peak("5", noon(20)), Month: peak("3", noon(30)), Others: []quotav1.Peak{peak("7", noon(19)), peak("4", noon(25))}},
			want:   "pods 1@31 4@25 7@19 +5@20 +3@30",
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.status.Resource = "pods"
			status := []quotav1.ResourcePeaks{test.status, {Resource: "secrets", Month: peak("3", noon(31))}}
			if got := peaksText(peaks{}.next(noon(31), status, podsHeld(10), podsHeld(1)).stored(noon(31), nil)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	bounded := peaks{}.next(noon(31), []quotav1.ResourcePeaks{{Resource: "pods", Others: many}}, podsHeld(10), nil)
	if got := len(bounded["pods"]); got != monthDays {
		t.Errorf("of ten thousand peaks %d are left", got)
	}
}

// state is the amount of a resource that was held at some time.
type state struct {
	at   time.Time
	name corev1.ResourceName
	held int64
}

// mostOf finds the most of each span among all that was seen, as peaksText puts it.
func mostOf(seen []state, now time.Time) string {
	var lines []string
	for _, name := range []corev1.ResourceName{"pods", "secrets"} {
		var texts []string
		for _, days := range []int64{1, 7, 30} {
			most := state{held: -1}
			for _, one := range seen { // in order of time
				if one.name == name && dayOf(now)-dayOf(one.at) < days && one.held >= most.held {
					most = one
				}
			}
			texts = append(texts, fmt.Sprintf("%d@%d", most.held, most.at.Day()))
		}
		if line := strings.ReplaceAll(strings.Join(texts, " "), "-1@1", "?"); line != "? ? ?" {
			lines = append(lines, string(name)+" "+line)
		}
	}
	return strings.Join(lines, "; ")
}

// Two leaders take turns, are started again, and have clocks that differ by up to an hour. For any states that they
// see, the status has the most of it.
func TestPeaksAreTheMostOfAllThatWasSeen(t *testing.T) {
	hard := corev1.ResourceList{"pods": resource.MustParse("9"), "secrets": resource.MustParse("9")}
	rapid.Check(t, func(t *rapid.T) {
		start := noon(1)
		newest := start
		var leaders [2]peaks
		var status []quotav1.ResourcePeaks
		var seen []state
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			start = start.Add(time.Duration(rapid.IntRange(0, 24*3600).Draw(t, "seconds")) * time.Second)
			if rapid.IntRange(0, 9).Draw(t, "sleeps") == 0 {
				start = start.AddDate(0, 0, rapid.IntRange(1, 40).Draw(t, "days"))
			}
			held := corev1.ResourceList{}
			for _, name := range []corev1.ResourceName{"pods", "secrets"} {
				if amount := rapid.Int64Range(-3, 9).Draw(t, string(name)); amount >= 0 { // otherwise it isn't counted
					held[name] = *resource.NewQuantity(amount, resource.DecimalSI)
				}
			}
			if len(held) == 0 {
				// No peak has the time of this look. At midnight, a clock that is ahead would end a month that goes on for
				// the next leader.
				start = tomorrow(start).Add(day / 2)
			}
			now := start.Add(time.Duration(rapid.IntRange(-1800, 1800).Draw(t, "clock")) * time.Second)
			leader := rapid.IntRange(0, 1).Draw(t, "leader")
			if rapid.Bool().Draw(t, "starts again") {
				leaders[leader] = nil
			}
			if len(held) > 0 && newest.Before(now) {
				newest = now
			}
			for name, amount := range held {
				seen = append(seen, state{at: newest, name: name, held: amount.Value()})
			}
			leaders[leader] = leaders[leader].next(now, status, hard, held)
			status = leaders[leader].stored(now, nil)
			for i := range status {
				if len(status[i].Others) > monthDays-2 {
					t.Fatalf("%d peaks are kept besides", len(status[i].Others))
				}
			}
			shown := slices.Clone(status)
			for i := range shown {
				shown[i].Others = nil
			}
			last := now
			if newest.After(last) {
				last = newest
			}
			if diff := cmp.Diff(mostOf(seen, last), peaksText(shown)); diff != "" {
				t.Fatalf("(-want,+got):\n%s", diff)
			}
		}
	})
}

// peaks returns those of the status.
func (b *bench) peaks(t *testing.T) string {
	t.Helper()
	return peaksText(b.status(t).Peaks)
}

// succeed lets another leader go on.
func (b *bench) succeed() { b.QuotaController = NewQuotaController(b.Parts) }

// edit changes the spec.
func (b *bench) edit(t *testing.T, change func(*quotav1.ClusterResourceQuotaSpec)) *quotav1.ClusterResourceQuota {
	t.Helper()
	quota := &quotav1.ClusterResourceQuota{}
	if err := b.client.Get(t.Context(), client.ObjectKey{Name: "team"}, quota); err != nil {
		t.Fatal(err)
	}
	change(&quota.Spec)
	if err := b.client.Update(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	return quota
}

func TestAPeakBetweenTwoWritesIsInTheNextStatusAndOutlivesItsLeader(t *testing.T) {
	quota := team("configmaps", "9")
	b := newBench(t, quota, registered())
	for _, step := range []struct {
		number int
		wait   time.Duration
		want   string
	}{
		{number: 1, want: "configmaps 1@1 1@1 1@1"},
		{number: 4, wait: 300 * time.Millisecond, want: "configmaps 1@1 1@1 1@1"},
		{number: 2, wait: 300 * time.Millisecond, want: "configmaps 1@1 1@1 1@1"},
		{number: 2, wait: 400 * time.Millisecond, want: "configmaps 4@1 4@1 4@1"},
	} {
		b.clock.Step(step.wait)
		b.counts(t, quota, step.number)
		b.reconcile(t)
		if got := b.peaks(t); got != step.want {
			t.Fatalf("with %d after %s: got %s, want %s", step.number, step.wait, got, step.want)
		}
	}
	b.succeed()
	b.counts(t, quota, 3)
	b.reconcile(t)
	if got := b.peaks(t); got != "configmaps 4@1 4@1 4@1" {
		t.Errorf("the next leader: got %s", got)
	}
}

// Two processes may take themselves for the leader for a moment.
func TestTheNewerOfTwoLeadersLosesNothingOfTheOlder(t *testing.T) {
	quota := team("configmaps", "9")
	b := newBench(t, quota, registered())
	older := b.QuotaController
	b.counts(t, quota, 2)
	b.succeed()
	b.reconcile(t)
	newer := b.QuotaController
	b.clock.Step(time.Second)
	b.counts(t, quota, 5)
	b.QuotaController = older
	b.reconcile(t)
	b.clock.Step(time.Second)
	b.counts(t, quota, 3)
	b.QuotaController = newer
	b.reconcile(t)
	if got := b.peaks(t); got != "configmaps 5@1 5@1 5@1" {
		t.Errorf("got %s", got)
	}
}

// Nothing but the time says that it is another day.
func TestPeaksPassWithTheDays(t *testing.T) {
	quota := team("configmaps", "9")
	b := newBench(t, quota, registered())
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: "team"}}
	b.counts(t, quota, 6)
	b.reconcile(t)
	b.counts(t, quota, 4)
	want := map[int]string{1: "6@1 6@1 6@1", 2: "4@2 6@1 6@1", 7: "4@7 6@1 6@1", 8: "4@8 4@8 6@1", 30: "4@30 4@30 6@1", 31: "4@31 4@31 4@31"}
	for day := 1; day <= 31; day++ {
		b.clock.Step(time.Second)
		result, err := b.Reconcile(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		if text, some := want[day]; some && b.peaks(t) != "configmaps "+text {
			t.Errorf("day %d: got %s, want %s", day, b.peaks(t), text)
		}
		b.clock.Step(result.RequeueAfter)
	}
}

func TestPeaksAreOfOneQuotaAndOfWhatItLimits(t *testing.T) {
	for name, test := range map[string]struct {
		// limits are set one after another, and 2 config maps are there each time; 6 were before.
		limits []corev1.ResourceList
		// again: the quota is deleted, and made again.
		again bool
		want  string
	}{
		"the limit is raised":       {limits: []corev1.ResourceList{list("configmaps", "99")}, want: "configmaps 6@1 6@1 6@1"},
		"the limit is lowered":      {limits: []corev1.ResourceList{list("configmaps", "5")}, want: "configmaps 6@1 6@1 6@1"},
		"it isn't limited any more": {limits: []corev1.ResourceList{list("pods", "5")}},
		"it is limited again": {
			limits: []corev1.ResourceList{list("pods", "5"), list("configmaps", "9")}, want: "configmaps 2@1 2@1 2@1",
		},
		"the quota is made again": {limits: []corev1.ResourceList{list("configmaps", "9")}, again: true, want: "configmaps 2@1 2@1 2@1"},
	} {
		t.Run(name, func(t *testing.T) {
			quota := team("configmaps", "9")
			b := newBench(t, quota, registered())
			b.counts(t, quota, 6)
			b.reconcile(t)
			if test.again {
				made := team("configmaps", "9")
				made.UID = "another"
				if err := errors.Join(b.client.Delete(t.Context(), quota), b.client.Create(t.Context(), made)); err != nil {
					t.Fatal(err)
				}
			}
			for _, hard := range test.limits {
				quota := b.edit(t, func(spec *quotav1.ClusterResourceQuotaSpec) { spec.Quota.Hard = hard })
				b.clock.Step(time.Second)
				b.counts(t, quota, 2)
				b.reconcile(t)
			}
			if got := b.peaks(t); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestWhatIsHeld(t *testing.T) {
	for name, test := range map[string]struct {
		mode     quotav1.EnforcementMode
		counted  int // config maps a, b, c and so on
		reserved []string
		want     string
	}{
		"used and reserved": {counted: 2, reserved: []string{"x", "y"}, want: "4"},
		// A replica granted c from escrow. It was counted, and recorded later.
		"nothing is in it twice": {counted: 3, reserved: []string{"c", "x"}, want: "4"},
		"the ledger has what has just gone, beside what took its place":           {counted: 5, reserved: []string{"x"}, want: "5"},
		"more than the limit is used":                                             {counted: 6, reserved: []string{"x"}, want: "7"},
		"more than the limit is admitted, because the mode is one that admits it": {mode: quotav1.EnforcementWarn, counted: 5, reserved: []string{"x"}, want: "6"},
	} {
		t.Run(name, func(t *testing.T) {
			quota := team("configmaps", "5")
			quota.Spec.Enforcement.Mode = test.mode
			b := newBench(t, quota, registered())
			b.counts(t, quota, test.counted)
			b.reserves(test.reserved...)
			held := heldIn(quota.Spec, b.look(quota, b.Group.Current("team")))
			if got := held["configmaps"]; got.String() != test.want {
				t.Errorf("got %s, want %s", got.String(), test.want)
			}
		})
	}
}

func TestAStatusIsWrittenForItsPeaksAloneEveryTenSeconds(t *testing.T) {
	quota := team("configmaps", "100")
	b := newBench(t, quota, registered())
	b.counts(t, quota, 1)
	b.reconcile(t)
	b.writes = 0
	for second := range 30 { // until the proof is too old
		b.counts(t, quota, 2+second) // each time more
		b.look(b.edit(t, func(*quotav1.ClusterResourceQuotaSpec) {}), b.Group.Current("team"))
		b.counts(t, quota, 1)
		b.clock.Step(time.Second)
		b.reconcile(t)
	}
	if b.writes != 3 {
		t.Errorf("%d writes in half a minute, want 3", b.writes)
	}
	b.clock.Step(peaksEvery)
	b.reconcile(t)
	if got := b.peaks(t); got != "configmaps 31@1 31@1 31@1" {
		t.Errorf("in the end: got %s", got)
	}
}
