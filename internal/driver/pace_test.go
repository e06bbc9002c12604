// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// paced runs a test on a Group with these options.
func paced(t *testing.T, store *memoryStore, options Options, test func(t *testing.T, group *Group)) {
	t.Helper()
	bubble(t, store, options, func(t *testing.T, group *Group, _ *watcher) { test(t, group) })
}

// chargeOneAfterTheOther has clients charge for a while, each with a pause of its
// own between two charges, and returns how many were granted.
func chargeOneAfterTheOther(t *testing.T, group *Group, lasting time.Duration, clients int, pause func() time.Duration) int {
	t.Helper()
	var mu sync.Mutex
	granted, end := 0, clock.RealClock{}.Now().Add(lasting)
	var running sync.WaitGroup
	for client := range clients {
		running.Go(func() {
			for i := 0; (clock.RealClock{}).Now().Before(end); i++ {
				decision, err := group.Reserve(t.Context(), []ledger.Charge{onePod("team", 1_000_000, fmt.Sprint(client, "-", i))})
				if !ledger.IsGranted(decision) {
					t.Errorf("want Granted, got %v, error %v", decision, err)
				}
				mu.Lock()
				granted++
				mu.Unlock()
				pass(pause())
			}
		})
	}
	running.Wait()
	return granted
}

func TestWritesUnderLoadKeepTheirPace(t *testing.T) {
	for name, clients := range map[string]int{"50 clients": 50, "200 clients": 200} {
		t.Run(name, func(t *testing.T) {
			store := newMemoryStore("team")
			random := rand.New(rand.NewPCG(1, uint64(clients)))
			paced(t, store, Options{Options: machine.Options{Pace: 40 * time.Millisecond, PaceEach: 2 * time.Millisecond}}, func(t *testing.T, group *Group) {
				var mu sync.Mutex
				chargeOneAfterTheOther(t, group, time.Second, clients, func() time.Duration {
					mu.Lock()
					defer mu.Unlock()
					return time.Duration(random.IntN(150)) * time.Millisecond
				})
			})
			// Never more than one in half the pace, and the last ones after the second.
			if swaps := store.swapCount(); swaps > 55 {
				t.Errorf("want at most 55 writes in a second, got %d", swaps)
			}
		})
	}
}

// counter is a Counter of one count.
type counter struct{ pods, observed atomic.Int64 }

func (c *counter) Observe(string, ledger.State) *ledger.Observation {
	c.observed.Add(1)
	draft := observedPods(c.pods.Load())
	return &draft
}

func observedPods(pods int64) ledger.Observation {
	source := schema.GroupResource{Resource: "pods"}
	return ledger.Observation{
		Basis: limitsOf("team", 1).Basis, Used: podsList(pods),
		Sources: map[corev1.ResourceName][]schema.GroupResource{corev1.ResourcePods: {source}},
		Counted: map[schema.GroupResource]uint64{source: uint64(pods), ledger.Namespaces: 1},
		Touched: map[schema.GroupResource]uint64{source: uint64(pods)},
		Seen:    func(ledger.Reservation) bool { return false },
	}
}

// One replica has all the clients, and the other, the leader, none: it must have
// its turn all the same, even though each of its writes begins with the other's
// state of a moment ago.
func TestABusyReplicaLeavesTheLeaderItsTurn(t *testing.T) {
	store := newMemoryStore("team")
	store.latency = 50 * time.Millisecond // a busy machine
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		options := Options{Options: machine.Options{Pace: 40 * time.Millisecond, PaceEach: 2 * time.Millisecond, MaxWaiting: 1000}, CallTimeout: time.Second, EditTimeout: 10 * time.Second}
		busy, leader := New(ctx, clock.RealClock{}, store, &watcher{}, options), New(ctx, clock.RealClock{}, store, &watcher{}, options)
		var both sync.WaitGroup
		both.Go(func() {
			chargeOneAfterTheOther(t, busy, 5*time.Second, 100, func() time.Duration { return time.Millisecond })
		})
		// As at the start of a leader: its first write is seen by all.
		store.put("team", store.state("team"))
		busy.Saw("team", store.stored["team"])
		settles := 0
		both.Go(func() {
			for end := (clock.RealClock{}).Now().Add(5 * time.Second); (clock.RealClock{}).Now().Before(end); settles++ {
				if err := leader.Edit(t.Context(), "team", settleTo(int64(settles))); err != nil {
					t.Error(err)
				}
				busy.Saw("team", store.snapshot("team"))
				pass(20 * time.Millisecond)
			}
		})
		both.Wait()
		if settles < 8 {
			t.Errorf("the leader wrote %d times in 5s, want at least 8", settles)
		}
		stop()
		busy.Wait()
		leader.Wait()
	})
}
