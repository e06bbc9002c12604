// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// living has a life.
type living struct{ life Life }

func (l living) Life() Life { return l.life }

// Old is judged at 20, for an age of 10. Everything in the ledger at first was seen at 0, and all else at 15.
func TestAnAgeIsSinceALifeWasFirstSeen(t *testing.T) {
	escrow := func(number int) State {
		renewed := escrowOf("e", "pods", "2")
		renewed.Renewal = number
		return State{}.holding(renewed)
	}
	recalled := Edit(escrow(1))
	recalled.Recall("")
	first, doubtful := creation("a", "a", "pods", "1"), creation("a", "a", "pods", "1")
	doubtful.Doubtful = true
	held := State{}.with(first)
	suspect := State{Suspects: map[string]Suspect{"ns": {Object: first.Object}}}
	for name, test := range map[string]struct {
		first, then State
		want        []types.UID
		next        time.Duration
	}{
		"what its writer's clock calls over isn't":      {then: State{}.with(first.expiring(time.Unix(1, 0))), next: 5 * time.Second},
		"what its writer's clock calls young is old":    {first: State{}.with(first.expiring(time.Unix(1<<40, 0))), want: []types.UID{"a"}},
		"the oldest comes first":                        {first: State{}.with(creation("z", "z"), first), want: []types.UID{"a", "z"}},
		"what is charged again is as old as before":     {first: held, then: State{}.with(first.expiring(expiry.Add(time.Second))), want: []types.UID{"a"}},
		"what is put in doubt is as old as before":      {first: held, then: State{}.with(doubtful), want: []types.UID{"a"}},
		"what makes its namespace a suspect is young":   {first: State{}.with(doubtful), then: suspect, next: 5 * time.Second},
		"an escrow that is renewed at once is young":    {first: escrow(1), then: escrow(2), next: 5 * time.Second},
		"an escrow that is recalled is as old as ever":  {first: escrow(1), then: recalled.State(), want: []types.UID{"e"}},
		"the attempt of another object isn't the first": {first: held, then: State{}.with(creation("b", "a", "pods", "1")), next: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			ages, at := Ages{}, func(seconds int64) time.Time { return time.Unix(seconds, 0) }
			state := test.first
			ages.See(at(0), state.Lives("ledger")...)
			if len(test.then.Lives("ledger")) > 0 {
				state = test.then
			}
			lives := state.Lives("ledger")
			ages.See(at(15), lives...)
			all := map[int]living{}
			for i, life := range lives {
				all[i] = living{life}
			}
			old, next := Old(ages, at(20), all, func(living) (time.Duration, bool) { return 10 * time.Second, true })
			var got []types.UID
			for _, one := range old {
				got = append(got, one.life.uid)
			}
			if diff := cmp.Diff(test.want, got); diff != "" || next != test.next {
				t.Errorf("the next in %s; (-want,+got):\n%s", next, diff)
			}
			if len(ages) != len(lives) {
				t.Errorf("%d ages are known of %d lives", len(ages), len(lives))
			}
			if old, next := Old(ages, at(20), all, func(living) (time.Duration, bool) { return 0, false }); len(old) > 0 || next != 0 {
				t.Errorf("%d are old that never are, the next in %s", len(old), next)
			}
		})
	}
}

// The clock of the fences' writers stands still. They are told apart all the
// same.
func TestEachFenceHasALifeOfItsOwn(t *testing.T) {
	seen, state := map[Life]bool{}, counted("pods", "1")
	set := func() {
		state = raised(state, fence(4, "pods", "3"))
		seen[state.Fence.Life("ledger")] = true
	}
	end := func(change func(*Draft)) {
		draft := Edit(state)
		change(draft)
		if state = draft.State(); state.Fence.Generation != 0 || len(state.Lives("ledger")) != 0 {
			t.Fatalf("the fence still stands: %v", state.Fence)
		}
	}
	set()
	set()
	first := state.Fence
	end(func(d *Draft) { d.RemoveFence(first, 3) })
	set()
	end(func(d *Draft) {
		observed := count(corev1.ResourceList{}, versions{})
		observed.Generation = 4
		d.Settle(observed)
	})
	set()
	draft := Edit(state)
	draft.RemoveFence(first, 3)
	if draft.Changed() {
		t.Error("a fence is removed that was set later")
	}
	if len(seen) != 4 {
		t.Errorf("4 fences had %d lives", len(seen))
	}
	if first.Life("ledger") == first.Life("another") {
		t.Error("the fence of another ledger is taken for the same")
	}
}
