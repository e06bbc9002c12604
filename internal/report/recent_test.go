// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

var start = time.Unix(1000, 0)

// tell tells a refusal if it is due, and says whether it was.
func tell(recent *Recent[topic], refusal outcomes.Refusal, now time.Time) bool {
	due := recent.Due(topicOf(&refusal), now)
	if due {
		recent.Told(topicOf(&refusal), now)
	}
	return due
}

func TestRefusalsThatAreDue(t *testing.T) {
	first := outcomes.Refusal{Quota: "team", Namespace: "shop", Reason: "QuotaExceeded", Resources: []corev1.ResourceName{"pods"}}
	for name, test := range map[string]struct {
		second func(*outcomes.Refusal)
		after  time.Duration
		want   bool
	}{
		"the same a moment later is not":    {after: time.Second},
		"nor just before the interval ends": {after: time.Minute - 1},
		"but when it has ended":             {after: time.Minute, want: true},
		"another object is the same":        {second: func(r *outcomes.Refusal) { r.Name, r.Message = "web-2", "other" }},
		"another namespace is told":         {second: func(r *outcomes.Refusal) { r.Namespace = "office" }, want: true},
		"so is another quota":               {second: func(r *outcomes.Refusal) { r.Quota = "all" }, want: true},
		"and another resource":              {second: func(r *outcomes.Refusal) { r.Resources = []corev1.ResourceName{"services"} }, want: true},
		"and another reason":                {second: func(r *outcomes.Refusal) { r.Reason = "UsageUnknown" }, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			recent := NewRecent[topic](time.Minute, 10)
			// The current map rotates between the two.
			tell(recent, outcomes.Refusal{Quota: "before"}, start)
			told := start.Add(30 * time.Second)
			if !tell(recent, first, told) {
				t.Fatal("the first is not due")
			}
			second := first
			if test.second != nil {
				test.second(&second)
			}
			if got := tell(recent, second, told.Add(test.after)); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestAnUnreportedRefusalIsDueAgain(t *testing.T) {
	recent, refusal := NewRecent[topic](time.Minute, 10), outcomes.Refusal{Quota: "team"}
	for range 2 {
		if !recent.Due(topicOf(&refusal), start) {
			t.Fatal("it is not due")
		}
	}
}

func TestMoreThanMostWait(t *testing.T) {
	recent := NewRecent[topic](time.Minute, 2)
	for i, want := range []bool{true, true, false, false} {
		if got := tell(recent, outcomes.Refusal{Namespace: fmt.Sprint(i)}, start); got != want {
			t.Errorf("number %d: got %v, want %v", i, got, want)
		}
	}
	if !tell(recent, outcomes.Refusal{Namespace: "2"}, start.Add(time.Minute)) {
		t.Error("there is no room after an interval")
	}
}

// For any sequence of refusals, nothing is told twice within an interval, and no
// more is remembered than was allowed.
func TestNothingIsToldTwiceWithinAnInterval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const interval, most = 10 * time.Second, 3
		recent, now, last := NewRecent[topic](interval, most), start, map[string]time.Time{}
		for range rapid.IntRange(1, 100).Draw(t, "refusals") {
			now = now.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "seconds")) * time.Second)
			namespace := fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "namespace"))
			if tell(recent, outcomes.Refusal{Namespace: namespace}, now) {
				if told, before := last[namespace]; before && now.Sub(told) < interval {
					t.Fatalf("namespace %s: told again after %s", namespace, now.Sub(told))
				}
				last[namespace] = now
			}
			if len(recent.current) > most || len(recent.previous) > most {
				t.Fatalf("remembers %d and %d", len(recent.current), len(recent.previous))
			}
		}
	})
}

// A refusal that was told a moment ago costs next to nothing.
func TestASuppressedRefusalAllocatesNothing(t *testing.T) {
	recent, refusal := NewRecent[topic](time.Minute, 10), refusal("QuotaExceeded", exceeded)
	tell(recent, refusal, start)
	if got := testing.AllocsPerRun(100, func() { tell(recent, refusal, start) }); got != 0 {
		t.Errorf("got %v allocations", got)
	}
}
