// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// The change is made twice, on the old state and on the newer one.
func TestEndedReservationsAreReportedOnceWritten(t *testing.T) {
	store := newMemoryStore("team")
	store.beforeSwap = func(attempt int) error {
		if attempt == 2 {
			store.put("team", store.stored["team"].State)
		}
		return nil
	}
	inBubble(t, store, func(t *testing.T, group *Group, seen *watcher) {
		charge := onePod("team", 5, "p")
		if decision, err := group.Reserve(t.Context(), []ledger.Charge{charge}); err != nil || !ledger.IsGranted(decision) {
			t.Fatalf("want Granted, got %v, error %v", decision, err)
		}
		if err := group.Edit(t.Context(), "team", func(draft *ledger.Draft) { draft.Drop(charge.Reservation.Key()) }); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(ledger.Ends{Expired: 1}, seen.ended); diff != "" || seen.conflicts != 1 {
			t.Errorf("want one end after one conflict, got %d; ends (-want,+got):\n%s", seen.conflicts, diff)
		}
	})
}

// A count under the name of a quota that is gone is another quota's.
func TestNothingIsCountedForAQuotaThatWasForgotten(t *testing.T) {
	store, counted := full(3), &counter{}
	forget := ledger.Edit(store.state("team"))
	forget.Forget(1) // no count comes as far, so it is looked again
	store.put("team", forget.State())
	inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
		group.Follow(counted)
		group.Saw("team", store.snapshot("team"))
		passUntilQuiet(10 * time.Second)
		before := counted.observed.Load()
		group.Forget("team")
		passUntilQuiet(time.Minute)
		if after := counted.observed.Load(); before < 5 || after != before {
			t.Errorf("want the count asked for again and again, and never once it was forgotten, got %d and then %d", before, after)
		}
	})
}

// An observer keeps for good the figures of a quota that it was told to forget.
func TestNothingIsToldOfAQuotaThatWasForgotten(t *testing.T) {
	store := newMemoryStore("team")
	store.latency = 100 * time.Millisecond
	store.beforeSwap = func(int) error { return machine.ErrConflict }
	inBubble(t, store, func(t *testing.T, group *Group, seen *watcher) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		answer := reserveLater(ctx, group, onePod("team", 5, "p"))
		passUntilQuiet(250 * time.Millisecond)
		group.Forget("team")
		before := seen.conflicts
		if got := <-answer; got.err == nil {
			t.Errorf("want the deadline's error, got %v", got.decision)
		}
		passUntilQuiet(time.Second)
		if seen.conflicts != before || before == 0 {
			t.Errorf("want some conflicts, and none after it was forgotten, got %d and then %d", before, seen.conflicts)
		}
	})
}
