// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"fmt"
	"testing"
	"time"
)

// fight is what a Brake sees of somebody who reverts repairs.
type fight struct {
	brake Brake
	now   time.Time
	// waits is how long each repair waited.
	waits []time.Duration
	// believed is how often a repair was believed, and then reverted.
	believed int
}

// reverts has the repair, once it was due, be reverted after this time.
func (f *fight) reverts(after time.Duration) {
	f.brake.Edited(f.now)
	wait := f.brake.Wait(f.now)
	f.waits = append(f.waits, wait)
	f.now = f.now.Add(wait)
	f.brake.Repaired(f.now)
	f.now = f.now.Add(after)
	if f.brake.Trial(f.now) == 0 {
		f.believed++
	}
}

func newFight() *fight { return &fight{now: time.Unix(1_800_000_000, 0)} }

func TestRepairsThatAreRevertedWaitLongerAndLonger(t *testing.T) {
	f := newFight()
	for range 12 {
		f.reverts(10 * time.Millisecond)
	}
	want := []float64{0, 1, 2, 4, 8, 16, 32, 64, 128, 180, 180, 180} // seconds
	for i, wait := range f.waits {
		if wait.Seconds() != want[i] {
			t.Errorf("repair %d waited for %s, want %v s", i, wait, want[i])
		}
	}
	if f.believed != 0 {
		t.Errorf("%d repairs were believed that lasted for an instant", f.believed)
	}
}

// Somebody who comes back regularly must not be taken for gone in between.
func TestAFightWithSomebodyWhoComesBackDoesNotFlap(t *testing.T) {
	for _, every := range []time.Duration{
		100 * time.Millisecond, 2 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 3 * time.Minute, 4 * time.Minute,
	} {
		f := newFight()
		for i := range 50 {
			f.reverts(every + time.Duration(i%3)*every/20)
		}
		if f.believed > 1 {
			t.Errorf("every %s: %d repairs were believed, want one at most", every, f.believed)
		}
	}
}

func TestAfterAQuietTimeARepairIsImmediate(t *testing.T) {
	for name, test := range map[string]struct {
		happens func(f *fight)
		want    time.Duration
	}{
		"the first":                      {happens: func(*fight) {}},
		"after a repair that has lasted": {happens: func(f *fight) { f.reverts(calm + time.Second) }},
		"after a fight": {
			happens: func(f *fight) {
				for range 9 {
					f.reverts(time.Second)
				}
				f.reverts(calm + time.Second)
			},
		},
		"but not soon after one": {happens: func(f *fight) { f.reverts(calm - time.Second) }, want: time.Second},
		"nor if it is noted again and again": {
			happens: func(f *fight) { f.reverts(0); f.brake.Edited(f.now); f.brake.Edited(f.now.Add(time.Hour)) }, want: time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFight()
			test.happens(f)
			f.brake.Edited(f.now)
			if got := f.brake.Wait(f.now); got != test.want {
				t.Errorf("waits for %s, want %s", got, test.want)
			}
		})
	}
}

func TestARepairIsBelievedOnceItHasLastedForLongEnough(t *testing.T) {
	for name, test := range map[string]struct {
		lasted []time.Duration // each repair before
		want   time.Duration
	}{
		"the first, for a moment":              {want: time.Second},
		"as long as it waited":                 {lasted: []time.Duration{0, 0, 0}, want: 4 * time.Second},
		"twice as long as the one before":      {lasted: []time.Duration{0, 20 * time.Second}, want: 40 * time.Second},
		"but not for longer than the calm":     {lasted: []time.Duration{4 * time.Minute}, want: calm},
		"and what was long ago counts no more": {lasted: []time.Duration{0, 0, time.Hour}, want: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFight()
			for _, lasted := range test.lasted {
				f.reverts(lasted)
			}
			f.brake.Edited(f.now)
			if !f.brake.IsEdited() || f.brake.Trial(f.now) != 0 {
				t.Error("what isn't repaired can't last")
			}
			f.now = f.now.Add(f.brake.Wait(f.now))
			f.brake.Repaired(f.now)
			if got := f.brake.Trial(f.now); got != test.want {
				t.Errorf("has to last for %s, want %s", got, test.want)
			}
			if got := f.brake.Trial(f.now.Add(test.want)); got != 0 {
				t.Errorf("after that, it has to last for %s more", got)
			}
		})
	}
}

func TestTheWordsSayHowOftenAndUntilWhen(t *testing.T) {
	f := &fight{now: time.Unix(0, 0)}
	says := func(want string) {
		t.Helper()
		if got := f.brake.Words("x did it"); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
	f.brake.Edited(f.now)
	says("somebody else edited the webhook configuration shared-quota: x did it")
	f.brake = Brake{}
	f.reverts(time.Minute)
	f.brake.Edited(f.now)
	again := "somebody else edits the webhook configuration shared-quota against the operator, and reverted its repair %s " +
		"since 1970-01-01T00:00:00Z: x did it; "
	says(fmt.Sprintf(again, "once") + "the next repair is at 1970-01-01T00:01:01Z")
	f.reverts(time.Minute)
	says(fmt.Sprintf(again, "once") + "the last repair counts once it has lasted until 1970-01-01T00:03:01Z")
	f.brake.Edited(f.now)
	says(fmt.Sprintf(again, "2 times") + "the next repair is at 1970-01-01T00:02:03Z")
}
