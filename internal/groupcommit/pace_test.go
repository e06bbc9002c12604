/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package groupcommit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// paced runs a test on a Group with these options.
func paced(t *testing.T, store *memoryStore, options Options, test func(t *testing.T, group *Group)) {
	t.Helper()
	options.CallTimeout, options.ChangeTimeout, options.MaxWaiting = time.Second, 10*time.Second, 1000
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		group := New(ctx, clock.RealClock{}, store, &watcher{}, options)
		test(t, group)
		stop()
		group.Wait()
	})
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
				decision, err := group.Reserve(t.Context(), []Charge{onePod("team", 1_000_000, fmt.Sprint(client, "-", i))})
				if !isGranted(decision) {
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
			paced(t, store, Options{Pace: 40 * time.Millisecond, PaceEach: 2 * time.Millisecond}, func(t *testing.T, group *Group) {
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

// Few clients that each wait for their answer would wait for the pace in vain:
// nobody else is going to come.
func TestFewClientsDoNotWaitForThePace(t *testing.T) {
	for clients, least := range map[int]int{1: 150, 3: 190, 10: 350} {
		t.Run(fmt.Sprintf("%d clients", clients), func(t *testing.T) {
			options := Options{Pace: time.Second, PaceEach: 2 * time.Millisecond}
			paced(t, newMemoryStore("team"), options, func(t *testing.T, group *Group) {
				granted := chargeOneAfterTheOther(t, group, time.Second, clients, func() time.Duration { return time.Millisecond })
				if granted < least {
					t.Errorf("want at least %d charges in a second, got %d", least, granted)
				}
			})
		})
	}
}

// What nobody waits for, such as a settle, waits for half the pace.
func TestAChangeWaitsForHalfThePace(t *testing.T) {
	store := newMemoryStore("team")
	paced(t, store, Options{Pace: 40 * time.Millisecond, PaceEach: 2 * time.Millisecond}, func(t *testing.T, group *Group) {
		start := clock.RealClock{}.Now()
		for i := range 5 {
			if err := group.Apply(t.Context(), "team", settleTo(int64(i))); err != nil {
				t.Fatal(err)
			}
		}
		if took := (clock.RealClock{}).Since(start); took < 80*time.Millisecond {
			t.Errorf("five changes took %s, want at least 80ms", took)
		}
	})
}

// A ledger that this process has put in another's place is its own, whether the
// watch shows it before or after: nobody else is to be left a turn.
func TestAReplacedLedgerIsNotAnotherReplicas(t *testing.T) {
	for name, happens := range map[string]func(*testing.T, *Group, *memoryStore){
		"the watch shows it after": func(t *testing.T, group *Group, store *memoryStore) {
			t.Helper()
			replace(t, group, store)
			group.Observe("team", store.stored["team"])
		},
		"the watch is faster": func(t *testing.T, group *Group, store *memoryStore) {
			t.Helper()
			store.afterSwap = func(int) error { group.Observe("team", store.stored["team"]); return nil }
			replace(t, group, store)
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := newMemoryStore("team")
			paced(t, store, Options{}, func(t *testing.T, group *Group) {
				happens(t, group, store)
				if contended(group) {
					t.Error("its own: taken for another replica's")
				}
				store.put("team", store.state("team"))
				group.Observe("team", store.stored["team"])
				if !contended(group) {
					t.Error("another replica's: taken for its own")
				}
			})
		})
	}
}

func replace(t *testing.T, group *Group, store *memoryStore) {
	t.Helper()
	if _, err := group.Replace(t.Context(), "team", store.stored["team"].Version, store.state("team")); err != nil {
		t.Fatal(err)
	}
}

func contended(group *Group) bool {
	committer := group.committer("team")
	committer.mu.Lock()
	defer committer.mu.Unlock()
	return committer.lockedContended(group.clock.Now())
}

func canWait(ledger.State) bool { return true }

// It made no room when it was queued, and does now: for what the change itself
// looks at, or for what another replica wrote.
func TestAChangeThatCanNoLongerWaitIsHurried(t *testing.T) {
	for name, happens := range map[string]func(*Group, *memoryStore, *atomic.Bool){
		"something has come free": func(group *Group, _ *memoryStore, room *atomic.Bool) {
			room.Store(true)
			group.Hurry("team")
		},
		"another replica has written": func(group *Group, store *memoryStore, room *atomic.Bool) {
			store.put("team", store.state("team"))
			room.Store(true)
			group.Observe("team", store.stored["team"])
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := newMemoryStore("team")
			paced(t, store, Options{Pace: 40 * time.Millisecond, PaceEach: 2 * time.Millisecond}, func(t *testing.T, group *Group) {
				if err := group.Apply(t.Context(), "team", settleTo(1)); err != nil {
					t.Fatal(err)
				}
				start, done := clock.RealClock{}.Now(), make(chan error, 1)
				var room atomic.Bool
				go func() {
					done <- group.ApplyLater(t.Context(), "team", settleTo(2), func(ledger.State) bool { return !room.Load() })
				}()
				synctest.Wait()
				happens(group, store, &room)
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if took := (clock.RealClock{}).Since(start); took > 40*time.Millisecond {
					t.Errorf("took %s, want at most 40ms", took)
				}
			})
		})
	}
}

func TestALazyChangeWaitsForOthersOrACharge(t *testing.T) {
	store := newMemoryStore("team")
	paced(t, store, Options{Pace: 40 * time.Millisecond, PaceEach: 2 * time.Millisecond}, func(t *testing.T, group *Group) {
		if err := group.Apply(t.Context(), "team", settleTo(1)); err != nil {
			t.Fatal(err)
		}
		start := clock.RealClock{}.Now()
		if err := group.ApplyLater(t.Context(), "team", settleTo(2), canWait); err != nil {
			t.Fatal(err)
		}
		if took := (clock.RealClock{}).Since(start); took < 150*time.Millisecond {
			t.Errorf("alone: took %s, want at least 150ms", took)
		}
		start = clock.RealClock{}.Now()
		later := make(chan error, 1)
		go func() { later <- group.ApplyLater(t.Context(), "team", settleTo(3), canWait) }()
		synctest.Wait()
		if decision, err := group.Reserve(t.Context(), []Charge{onePod("team", 9, "p")}); !isGranted(decision) {
			t.Fatalf("want Granted, got %v, error %v", decision, err)
		}
		if err := <-later; err != nil {
			t.Fatal(err)
		}
		if took := (clock.RealClock{}).Since(start); took > 20*time.Millisecond {
			t.Errorf("with a charge: took %s, want at most 20ms", took)
		}
	})
}

// One replica has all the clients, and the other, the leader, none: it must have
// its turn all the same, even though each of its writes begins with what it has
// seen of the other's a moment ago.
func TestABusyReplicaLeavesTheLeaderItsTurn(t *testing.T) {
	store := newMemoryStore("team")
	store.latency = 50 * time.Millisecond // a busy machine
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		options := Options{
			Pace: 40 * time.Millisecond, PaceEach: 2 * time.Millisecond,
			CallTimeout: time.Second, ChangeTimeout: 10 * time.Second, MaxWaiting: 1000,
		}
		busy, leader := New(ctx, clock.RealClock{}, store, &watcher{}, options), New(ctx, clock.RealClock{}, store, &watcher{}, options)
		var both sync.WaitGroup
		both.Go(func() {
			chargeOneAfterTheOther(t, busy, 5*time.Second, 100, func() time.Duration { return time.Millisecond })
		})
		// As at the start of a leader: its first write is seen by all.
		store.put("team", store.state("team"))
		busy.Observe("team", store.stored["team"])
		settles := 0
		both.Go(func() {
			for end := (clock.RealClock{}).Now().Add(5 * time.Second); (clock.RealClock{}).Now().Before(end); settles++ {
				if err := leader.Apply(t.Context(), "team", settleTo(int64(settles))); err != nil {
					t.Error(err)
				}
				busy.Observe("team", store.snapshot("team"))
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
