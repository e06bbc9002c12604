// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// A request waits a second for all ledgers together that refuse nothing.
func TestSeveralLedgersThatRefuseNothingAreDown(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f"}
	store := &outage{memoryStore: newMemoryStore(names...), down: map[string]error{}, silent: true}
	for _, name := range names {
		store.down[name] = errInjected
	}
	during(t, store, func(t *testing.T, group *Group) {
		charges := make([]ledger.Charge, 0, len(names))
		for _, name := range names {
			charges = append(charges, advisory(onePod(name, 5, "p")))
		}
		began := clock.RealClock{}.Now()
		decision, err := group.Reserve(t.Context(), charges)
		if took := (clock.RealClock{}).Since(began); took > admitAfter+6*admitLeast || !ledger.IsGranted(decision) || err != nil {
			t.Errorf("it took %v: %v, %v", took, decision, err)
		}
	})
}

// A caller that hasn't seen an edit from Audit to Deny is not admitted because the fenced ledger is slow.
func TestAFencedLedgerThatIsSlow(t *testing.T) {
	store := &outage{memoryStore: newMemoryStore("team"), down: map[string]error{}}
	during(t, store, func(t *testing.T, group *Group) {
		charge := advisory(onePod("team", 0, "a"))
		fence := ledger.Fence{
			Generation: charge.Limits.Generation + 1, Hard: podsList(0), Until: clock.RealClock{}.Now().Add(time.Minute),
		}
		if err := group.Edit(t.Context(), "team", func(draft *ledger.Draft) { draft.SetFence(fence) }); err != nil {
			t.Fatal(err)
		}
		store.latency = admitAfter + 100*time.Millisecond
		decision, err := group.Reserve(t.Context(), []ledger.Charge{charge})
		if ledger.IsGranted(decision) {
			t.Errorf("it was admitted above a fenced limit: %v, %v", decision, err)
		}
	})
}
