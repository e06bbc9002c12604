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

// Old is judged at 20, for an age of 10. Everything in the ledger at first was seen at 0, and all else at 15.
func TestAnAgeIsSinceALifeWasFirstSeen(t *testing.T) {
	escrow := func(number int) Reservation {
		return NewEscrow("replica", Key{UID: "e", Attempt: "1"}, list("pods", "2"), expiry).Renewed(number)
	}
	recalled, memory := escrow(1), creation("a", "a", "pods", "1")
	recalled.From, memory.Doubtful = "recalled", true
	doubtful := memory
	memory.Amounts = nil
	first := creation("a", "a", "pods", "1")
	for name, test := range map[string]struct {
		first, then []Reservation
		want        []types.UID
		next        time.Duration
	}{
		"what its writer's clock calls over isn't":      {then: []Reservation{first.expiring(time.Unix(1, 0))}, next: 5 * time.Second},
		"what its writer's clock calls young is old":    {first: []Reservation{first.expiring(time.Unix(1<<40, 0))}, want: []types.UID{"a"}},
		"the oldest comes first":                        {first: []Reservation{creation("z", "z"), first}, want: []types.UID{"a", "z"}},
		"what is renewed is young":                      {first: []Reservation{first}, then: []Reservation{first.expiring(expiry.Add(time.Second))}, next: 5 * time.Second},
		"what is put in doubt is as old as before":      {first: []Reservation{first}, then: []Reservation{doubtful}, want: []types.UID{"a"}},
		"what becomes a memory is young":                {first: []Reservation{doubtful}, then: []Reservation{memory}, next: 5 * time.Second},
		"an escrow that is renewed at once is young":    {first: []Reservation{escrow(1)}, then: []Reservation{escrow(2)}, next: 5 * time.Second},
		"an escrow that is recalled is as old as ever":  {first: []Reservation{escrow(1)}, then: []Reservation{recalled}, want: []types.UID{"e"}},
		"the attempt of another object isn't the first": {first: []Reservation{first}, then: []Reservation{creation("b", "a", "pods", "1")}, next: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			ages, at := Ages{}, func(seconds int64) time.Time { return time.Unix(seconds, 0) }
			state := State{}.with(test.first...)
			ages.See(at(0), state.Lives("ledger")...)
			if test.then != nil {
				state = State{}.with(test.then...)
			}
			ages.See(at(15), state.Lives("ledger")...)
			old, next := ages.Old(at(20), state, func(Reservation) (time.Duration, bool) { return 10 * time.Second, true })
			var got []types.UID
			for _, one := range old {
				got = append(got, one.UID)
			}
			if diff := cmp.Diff(test.want, got); diff != "" || next != test.next {
				t.Errorf("the next in %s; (-want,+got):\n%s", next, diff)
			}
			if len(ages) != len(state.Reservations) {
				t.Errorf("%d ages are known of %d reservations", len(ages), len(state.Reservations))
			}
			if old, next := ages.Old(at(20), state, func(Reservation) (time.Duration, bool) { return 0, false }); len(old) > 0 || next != 0 {
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
