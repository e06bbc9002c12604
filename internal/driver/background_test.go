// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// crowd counts how many writes are under way at once.
type crowd struct {
	*memoryStore
	now, most atomic.Int64
}

func (c *crowd) Swap(ctx context.Context, quota string, previous machine.Version, next ledger.State) (machine.Version, error) {
	defer c.now.Add(-1)
	if now := c.now.Add(1); now > c.most.Load() {
		c.most.Store(now)
	}
	return c.memoryStore.Swap(ctx, quota, previous, next)
}

// fivePods counts five pods for each quota.
type fivePods struct{}

func (fivePods) Observe(quota string, _ ledger.State) *ledger.Observation {
	observation := observedPods(5)
	observation.Basis = limitsOf(quota, 1).Basis
	return &observation
}

// crowded runs a test in which the counts of all quotas have just changed, each to five pods.
func crowded(t *testing.T, quotas []string, test func(t *testing.T, store *crowd, group *Group)) {
	t.Helper()
	store := &crowd{memoryStore: newMemoryStore(quotas...)}
	store.latency = 500 * time.Millisecond
	options := Options{Options: machine.Options{Pace: 20 * time.Millisecond, PaceEach: time.Millisecond}}
	bubble(t, store, options, func(t *testing.T, group *Group, _ *watcher) {
		group.Follow(fivePods{})
		for _, quota := range quotas {
			group.Saw(quota, store.snapshot(quota))
		}
		group.Counted(quotas, false)
		test(t, store, group)
	})
}

func someQuotas(many int) []string {
	quotas := make([]string, many)
	for i := range quotas {
		quotas[i] = fmt.Sprintf("team-%03d", i)
	}
	return quotas
}

// A leader that begins to count many quotas doesn't write all their ledgers at once.
func TestFewLedgersAreWrittenAtOnceIfNobodyWaits(t *testing.T) {
	quotas := someQuotas(5 * backgroundCalls)
	crowded(t, quotas, func(t *testing.T, store *crowd, _ *Group) {
		passUntilQuiet(time.Minute)
		if most := store.most.Load(); most != backgroundCalls {
			t.Errorf("%d writes at once, want %d", most, backgroundCalls)
		}
		for _, quota := range quotas {
			used := store.state(quota).Used["pods"]
			if used.Value() != 5 {
				t.Errorf("quota %s: %d pods are used, want 5", quota, used.Value())
			}
		}
	})
}

// A request doesn't wait for the turn of its quota's settle.
func TestARequestDoesNotWaitForTheSettlesOfOthers(t *testing.T) {
	quotas := someQuotas(20 * backgroundCalls)
	crowded(t, quotas, func(t *testing.T, store *crowd, group *Group) {
		passUntilQuiet(100 * time.Millisecond) // every quota's settle is under way, or waits for its turn
		start := clock.RealClock{}.Now()
		last := quotas[len(quotas)-1]
		decision, err := group.Reserve(t.Context(), []ledger.Charge{onePod(last, 100, "p")})
		if err != nil || !ledger.IsGranted(decision) {
			t.Fatalf("want Granted, got %v, error %v", decision, err)
		}
		// The settle's write, and the charge's.
		if took := (clock.RealClock{}).Since(start); took > 2*store.latency+100*time.Millisecond {
			t.Errorf("granted after %s, want two writes of %s", took, store.latency)
		}
	})
}
