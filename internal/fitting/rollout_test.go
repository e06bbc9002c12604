// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package fitting

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

func units(count int64) resource.Quantity { return *resource.NewQuantity(count, resource.DecimalSI) }

func TestNeed(t *testing.T) {
	const same = 10
	old := func(count, each int64) []replaced { return []replaced{{each: units(each), count: count}} }
	for name, test := range map[string]struct {
		rollout           rollout
		old               []replaced
		last, most, whole int64
	}{
		"new pods":                             {rollout{wanted: 3}, nil, 30, 30, 30},
		"some are there":                       {rollout{wanted: 5, present: 3}, nil, 20, 20, 20},
		"fewer are wanted":                     {rollout{wanted: 1, present: 3}, nil, 0, 0, 0},
		"one more before one goes":             {rollout{wanted: 3, surge: 1}, old(3, same), 0, 10, 10},
		"one goes first":                       {rollout{wanted: 3, unavailable: 1}, old(3, same), 0, 0, 0},
		"one goes first, two more if they can": {rollout{wanted: 4, unavailable: 1, surge: 2}, old(4, same), 0, 0, 20},
		"all go first":                         {rollout{wanted: 3, unavailable: 3}, old(3, same), 0, 0, 0},
		"larger ones":                          {rollout{wanted: 3, surge: 1}, old(3, 4), 18, 22, 22},
		"larger ones, one goes first":          {rollout{wanted: 3, unavailable: 1}, old(3, 4), 18, 18, 18},
		"smaller ones":                         {rollout{wanted: 3, surge: 1}, old(3, 40), -90, 10, 10},
		"smaller ones, one goes first":         {rollout{wanted: 3, unavailable: 1}, old(3, 40), -90, -30, -30},
		"smaller ones, all go first":           {rollout{wanted: 3, unavailable: 3}, old(3, 40), -90, -90, -30},
		"smaller ones, after some of the old":  {rollout{wanted: 4, present: 1, unavailable: 1}, old(4, 40), -130, -70, -70},
		"more of them":                         {rollout{wanted: 5, surge: 1}, old(3, same), 20, 30, 30},
		"more of them, one goes first":         {rollout{wanted: 5, unavailable: 1}, old(3, same), 20, 20, 20},
		"fewer of them":                        {rollout{wanted: 2, surge: 1}, old(3, same), -10, 0, 0},
		"half way":                             {rollout{wanted: 4, present: 2, surge: 1}, old(2, same), 0, 10, 10},
		"half way, with the surge there":       {rollout{wanted: 4, present: 2, surge: 1}, old(3, same), -10, 0, 0},
		"none are wanted":                      {rollout{wanted: 0, surge: 0, unavailable: 1}, old(3, same), 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.rollout.need(units(same), test.old)
			want := moments{last: units(test.last), most: units(test.most), whole: units(test.whole)}
			if got.last.Cmp(want.last) != 0 || got.most.Cmp(want.most) != 0 || got.whole.Cmp(want.whole) != 0 {
				t.Errorf("got %s, want %s", momentsText(got), momentsText(want))
			}
		})
	}
}

func momentsText(m moments) string {
	return fmt.Sprintf("last %s, most %s, whole %s", m.last.String(), m.most.String(), m.whole.String())
}

// controller replaces pods as Deployments do, with so much room: it makes new ones
// as long as there are not too many, and takes old ones away as long as enough are
// left. Its pods are ready at once.
type controller struct {
	rollout
	fresh int64
	old   []int64 // the amount that each of them frees
	room  int64
	// extra is the quota's surge, which only a pod can take that replaces another one.
	extra int64
	new   int64
}

// canAdd says, as quotas do, that a pod that takes nothing is made however little
// room there is.
func (c *controller) canAdd() bool {
	room := c.room
	if len(c.old) > 0 && c.new+int64(len(c.old))+1 > c.wanted {
		room += c.extra
	}
	return c.new < c.wanted && c.new+int64(len(c.old)) < c.wanted+c.surge && (c.fresh == 0 || c.fresh <= room)
}

func (c *controller) canTake() bool {
	return len(c.old) > 0 && c.new+int64(len(c.old)) > c.wanted-c.unavailable
}

func (c *controller) add() { c.new++; c.room -= c.fresh }

func (c *controller) take(which int) {
	c.room += c.old[which]
	c.old = append(append([]int64{}, c.old[:which]...), c.old[which+1:]...)
}

func (c *controller) done() bool { return c.new == max(c.wanted, c.present) && len(c.old) == 0 }

func drawController(t *rapid.T) *controller {
	c := &controller{fresh: rapid.Int64Range(0, 5).Draw(t, "fresh")}
	c.wanted = rapid.Int64Range(0, 6).Draw(t, "wanted")
	c.present = rapid.Int64Range(0, c.wanted).Draw(t, "present")
	c.surge = rapid.Int64Range(0, 3).Draw(t, "surge")
	c.unavailable = rapid.Int64Range(0, max(1, c.wanted)).Draw(t, "unavailable")
	if c.surge == 0 && c.unavailable == 0 {
		c.unavailable = 1
	}
	c.old = rapid.SliceOfN(rapid.Int64Range(0, 5), 0, 6).Draw(t, "old")
	c.new = c.present
	return c
}

// overLimit is room below zero, as there may be if a limit was lowered.
const overLimit = -1000

// roomFor gives as much room as is needed: any, if nothing is created.
func (c *controller) roomFor(need moments) {
	c.room = overLimit
	if need.created {
		c.room = need.most.Value()
	}
}

func (c *controller) need() moments {
	return c.rollout.need(units(c.fresh), oneByOne(c.old))
}

// oneByOne makes a group of each pod.
func oneByOne(frees []int64) []replaced {
	old := make([]replaced, 0, len(frees))
	for _, each := range frees {
		old = append(old, replaced{each: units(each), count: 1})
	}
	return old
}

// Pods that free the same need the same together as one by one, however many there are.
func TestGroupsNeedWhatTheirPodsNeed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawController(t)
		c.grows = rapid.Int64Range(0, 4).Draw(t, "grows")
		c.old = nil
		var groups []replaced
		for range rapid.IntRange(0, 4).Draw(t, "groups") {
			frees, count := rapid.Int64Range(0, 5).Draw(t, "frees"), rapid.Int64Range(0, 6).Draw(t, "count")
			groups = append(groups, replaced{each: units(frees), count: count})
			c.old = append(c.old, slices.Repeat([]int64{frees}, int(count))...)
		}
		got, want := c.rollout.need(units(c.fresh), groups), c.need()
		if momentsText(got) != momentsText(want) {
			t.Fatalf("together %s, one by one %s", momentsText(got), momentsText(want))
		}
	})
}

// A rollout that is scaled up at once makes more old pods first, which take the most that an
// old one takes.
func TestARolloutThatGrowsEndsWithWhatItNeeds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawController(t)
		c.grows = rapid.Int64Range(0, 4).Draw(t, "grows")
		if len(c.old) == 0 {
			t.Skip()
		}
		largest := slices.Max(c.old)
		c.roomFor(c.need())
		for range c.grows {
			c.room -= largest
			c.old = append(c.old, largest)
		}
		for !c.done() {
			switch canAdd, canTake := c.canAdd(), c.canTake(); {
			case canAdd && (!canTake || rapid.Bool().Draw(t, "adds")):
				c.add()
			case canTake:
				c.take(rapid.IntRange(0, len(c.old)-1).Draw(t, "which"))
			default:
				t.Fatalf("stuck with %d new pods, %v old ones and room for %d", c.new, c.old, c.room)
			}
		}
	})
}

// As many pods as a status can tell of take no longer than a few.
func TestHugeCountsAreNotWalked(t *testing.T) {
	const most = 1<<31 - 1
	huge := rollout{wanted: most, surge: most, unavailable: 0, grows: most}
	got := huge.need(units(1<<40), []replaced{{each: units(1 << 39), count: most}, {count: most, unknown: true}})
	if got.last.Sign() <= 0 || got.whole.Cmp(got.most) < 0 {
		t.Errorf("got %s", momentsText(got))
	}
}

// In any order of its steps, and of the pods that go first, a rollout ends that
// has the needed room.
func TestARolloutEndsWithWhatItNeeds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawController(t)
		c.roomFor(c.need())
		for !c.done() {
			switch canAdd, canTake := c.canAdd(), c.canTake(); {
			case canAdd && (!canTake || rapid.Bool().Draw(t, "adds")):
				c.add()
			case canTake:
				c.take(rapid.IntRange(0, len(c.old)-1).Draw(t, "which"))
			default:
				t.Fatalf("stuck with %d new pods, %v old ones and room for %d", c.new, c.old, c.room)
			}
		}
	})
}

// With any less there is an order in which it gets stuck: the pods that free
// least go first.
func TestARolloutGetsStuckWithLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawController(t)
		need := c.need()
		if !need.created {
			t.Skip()
		}
		c.room = need.most.Value() - 1
		for c.canAdd() || c.canTake() {
			if c.canTake() {
				least := 0
				for i := range c.old {
					if c.old[i] < c.old[least] {
						least = i
					}
				}
				c.take(least)
				continue
			}
			c.add()
		}
		if c.done() {
			t.Fatalf("it ended with room for %d less one", need.most.Value())
		}
	})
}

// surging draws a rollout in a quota that has surge, of which others may have taken some, and returns the verdict on it.
func surging(t *rapid.T) (c *controller, missing int64, why Surge) {
	c = drawController(t)
	c.room, c.extra = rapid.Int64Range(-8, 12).Draw(t, "room"), rapid.Int64Range(0, 12).Draw(t, "extra")
	need := c.need()
	if !need.created {
		t.Skip()
	}
	if slices.ContainsFunc(c.old, func(frees int64) bool { return c.fresh > frees }) { // Such pods get no surge.
		c.extra, need = 0, need.growing()
	}
	short, why := need.short(units(c.room), units(c.extra))
	return c, short.Value(), why
}

// In any order of its steps, a rollout that fits with surge ends, and holds none in the end.
func TestARolloutThatFitsWithSurgeEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, missing, _ := surging(t)
		if missing > 0 {
			t.Skip()
		}
		start := c.room
		for !c.done() {
			switch canAdd, canTake := c.canAdd(), c.canTake(); {
			case canAdd && (!canTake || rapid.Bool().Draw(t, "adds")):
				c.add()
			case canTake:
				c.take(rapid.IntRange(0, len(c.old)-1).Draw(t, "which"))
			default:
				t.Fatalf("stuck with %d new pods, %v old ones, room for %d and surge %d", c.new, c.old, c.room, c.extra)
			}
		}
		if c.room < min(start, 0) {
			t.Fatalf("room was %d, and is %d", start, c.room)
		}
	})
}

// A rollout that doesn't fit with surge gets stuck in some order of its steps.
func TestARolloutThatDoesNotFitWithSurgeGetsStuck(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, missing, why := surging(t)
		if missing == 0 {
			t.Skip()
		}
		for c.canAdd() || c.canTake() {
			if c.canTake() {
				c.take(slices.Index(c.old, slices.Min(c.old)))
				continue
			}
			c.add()
		}
		if c.done() {
			t.Fatalf("short %d (%s), and it ended", missing, why)
		}
	})
}

func TestWhatSurgeHasToDoWithAShortage(t *testing.T) {
	const each = 10
	old := []replaced{{each: units(each), count: 3}}
	for name, test := range map[string]struct {
		rollout     rollout
		old         []replaced
		fresh       int64
		left, surge int64
		missing     int64
		why         Surge
	}{
		"there is room":                               {rollout{wanted: 3, surge: 1}, old, each, 10, 0, 0, SurgeNone},
		"there is surge":                              {rollout{wanted: 3, surge: 1}, old, each, 0, 10, 0, SurgeNone},
		"there is neither":                            {rollout{wanted: 3, surge: 1}, old, each, 0, 0, 10, SurgeNone},
		"others have some of it":                      {rollout{wanted: 3, surge: 1}, old, each, -10, 20, 0, SurgeNone},
		"others have all of it":                       {rollout{wanted: 3, surge: 1}, old, each, -10, 10, 10, SurgeTaken},
		"it is less than one pod":                     {rollout{wanted: 3, surge: 1}, old, each, 0, 5, 5, SurgeTooSmall},
		"it is less than one pod, and others have it": {rollout{wanted: 3, surge: 1}, old, each, -5, 5, 10, SurgeTooSmall},
		"more pods take none":                         {rollout{wanted: 5}, nil, each, 10, 90, 40, SurgeNone},
		"more pods take none, while others roll":      {rollout{wanted: 4, surge: 1}, old, each, 0, 90, 10, SurgeNone},
		"a missing pod takes none":                    {rollout{wanted: 4, surge: 1}, old, each, 5, 90, 5, SurgeNone},
		"a pod that goes first leaves room":           {rollout{wanted: 3, unavailable: 1}, old, each, 0, 0, 0, SurgeNone},
		"but not while others hold surge":             {rollout{wanted: 3, unavailable: 1}, old, each, -10, 90, 10, SurgeNone},
	} {
		t.Run(name, func(t *testing.T) {
			missing, why := test.rollout.need(units(test.fresh), test.old).short(units(test.left), units(test.surge))
			if missing.Value() != test.missing || why != test.why {
				t.Errorf("got %s %q, want %d %q", missing.String(), why, test.missing, test.why)
			}
		})
	}
}

// The whole surge never takes more than is said.
func TestARolloutNeverTakesMoreThanItsWholeSurge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawController(t)
		need := c.need()
		c.room = 1 << 40
		start := c.room
		for !c.done() {
			if c.canAdd() && (!c.canTake() || rapid.Bool().Draw(t, "adds")) {
				c.add()
			} else {
				c.take(rapid.IntRange(0, len(c.old)-1).Draw(t, "which"))
			}
			if took := start - c.room; took > max(0, need.whole.Value()) {
				t.Fatalf("took %d, said %d", took, need.whole.Value())
			}
		}
	})
}
