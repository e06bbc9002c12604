// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestLag(t *testing.T) {
	elected := make(chan struct{})
	close(elected)
	// Every step takes a second. Each test ends with the lag after its last step.
	for name, test := range map[string]struct {
		steps []step
		want  time.Duration
	}{
		"nothing has changed": {},
		"the oldest change counts": {
			steps: []step{change, change, change}, want: 3 * time.Second,
		},
		"all is shown": {steps: []step{change, change, shown(2)}},
		"what changes while it is being written isn't shown yet": {
			steps: []step{change, change, shown(0.5)}, want: 2500 * time.Millisecond,
		},
		"a write of what was before the change shows nothing of it": {
			steps: []step{shown(0), change, shown(0.5)}, want: 2 * time.Second,
		},
		"a change of another quota is none": {
			steps: []step{func(l *Lag, _ func(float64) time.Time) { l.Changed([]string{"other"}) }},
		},
		"a quota that is gone doesn't lag": {
			steps: []step{change, func(l *Lag, _ func(float64) time.Time) { l.Forget("team") }},
		},
		"parts are left": {steps: []step{change, shown(1, "a", "b")}, want: 2 * time.Second},
		"the parts that were left are written in the end": {
			steps: []step{change, shown(1, "a", "b"), shown(2, "b"), shown(3)},
		},
		"each part has been written once, while others changed again": {
			// Written as of the first round: that was after one second.
			steps: []step{change, shown(1, "a", "b"), change, shown(3, "b"), change, shown(5, "a", "c")}, want: 5 * time.Second,
		},
		"a part that is never written holds the others up": {
			steps: []step{change, shown(1, "a", "b"), change, shown(3, "a"), change, shown(5, "a", "c")}, want: 6 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			clock := clocktesting.NewFakePassiveClock(began)
			lag := NewLag(clock, elected)
			at := func(second float64) time.Time { return began.Add(time.Duration(second * float64(time.Second))) }
			for i, step := range test.steps {
				clock.SetTime(at(float64(i)))
				step(lag, at)
			}
			clock.SetTime(at(float64(len(test.steps))))
			if got := lag.Of("team"); got != test.want {
				t.Errorf("lag: got %s, want %s", got, test.want)
			}
		})
	}
}

func TestAReplicaThatShowsNothingDoesNotLag(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	elected := make(chan struct{})
	lag := NewLag(clock, elected)
	lag.Changed([]string{"team"})
	clock.SetTime(clock.Now().Add(time.Hour))
	close(elected)
	if got := lag.Of("team"); got != 0 {
		t.Errorf("lag of what changed before it was elected: got %s, want none", got)
	}
	lag.Changed([]string{"team"})
	clock.SetTime(clock.Now().Add(time.Minute))
	if got := lag.Of("team"); got != time.Minute {
		t.Errorf("lag after it was elected: got %s, want a minute", got)
	}
}

type step = func(l *Lag, at func(second float64) time.Time)

func change(l *Lag, _ func(float64) time.Time) { l.Changed([]string{"team"}) }

// shown writes the state at a second, but for the parts that are left.
func shown(second float64, left ...string) step {
	return func(l *Lag, at func(float64) time.Time) { l.Shown("team", at(second), left...) }
}
