// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestPaceLetsEachNameWaitForItself(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	pace := NewPace(clock)
	if left := pace.Left("a"); left > 0 {
		t.Errorf("what was never written waits %s", left)
	}
	pace.Rest("a", time.Second)
	if left := pace.Left("a"); left != time.Second {
		t.Errorf("a waits %s, want 1s", left)
	}
	if left := pace.Left("b"); left > 0 {
		t.Errorf("b waits %s for a", left)
	}
	clock.SetTime(clock.Now().Add(time.Second))
	if left := pace.Left("a"); left > 0 {
		t.Errorf("a still waits %s after its rest", left)
	}
	pace.Rest("a", time.Minute)
	pace.Forget("a")
	if left := pace.Left("a"); left > 0 {
		t.Errorf("a waits %s after it was forgotten", left)
	}
}

func TestTornFiguresAreReadAgainForAMoment(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	pace := NewPace(clock)
	for i, step := range []struct {
		torn bool
		want time.Duration
	}{
		{}, {torn: true, want: lookSoon}, {}, // others are of one moment
		{torn: true, want: lookSoon}, {torn: true, want: lookSoon}, {torn: true, want: lookSoon}, {torn: true, want: lookSoon},
		{torn: true, want: lookSoon}, {torn: true}, // it lasts
		{torn: true, want: lookSoon},
	} {
		if got := pace.LookAgain("a", step.torn); got != step.want {
			t.Errorf("look %d: got %s, want %s", i, got, step.want)
		}
		clock.SetTime(clock.Now().Add(lookSoon))
	}
	clock.SetTime(clock.Now().Add(time.Minute))
	pace.Forget("a")
	if got := pace.LookAgain("a", true); got != lookSoon {
		t.Errorf("after it was forgotten: got %s, want %s", got, lookSoon)
	}
}
