// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

func escrowing(holder types.UID) Options {
	return Options{Options: machine.Options{
		Pace: 40 * time.Millisecond, PaceEach: 2 * time.Millisecond, Patience: 150 * time.Millisecond,
		Escrow: machine.EscrowOptions{
			Holder: string(holder), UID: holder, Life: 2 * time.Second, Recall: 2200 * time.Millisecond,
			Every: time.Second, Busy: 3, Parts: 4,
		},
	}}
}

// Two replicas take all there is, though each holds escrow on the way, in far fewer writes than charges.
func TestReplicasWithEscrowUseAllThereIs(t *testing.T) {
	const limit, clients = 2000, 8
	store := newMemoryStore("team")
	paced(t, store, escrowing("a"), func(t *testing.T, a *Group) {
		options := escrowing("b")
		options.CallTimeout, options.EditTimeout, options.MaxWaiting = time.Second, 10*time.Second, 1000
		b := New(t.Context(), clock.RealClock{}, store, &watcher{}, options)
		stop := store.watch("team", a, b)
		defer stop()
		var granted atomic.Int32
		var running sync.WaitGroup
		for client := range clients {
			running.Go(func() {
				for i := 0; ; i++ {
					group := a
					if client%2 == 1 {
						group = b
					}
					decision, err := group.Reserve(t.Context(), []ledger.Charge{onePod("team", limit, fmt.Sprint(client, "-", i))})
					if _, denied := decision.(ledger.Denied); denied {
						return
					}
					if err != nil || !ledger.IsGranted(decision) {
						t.Errorf("got %v, %v", decision, err)
						return
					}
					granted.Add(1)
					time.Sleep(5 * time.Millisecond)
				}
			})
		}
		running.Wait()
		if granted.Load() != limit {
			t.Errorf("granted %d, want %d", granted.Load(), limit)
		}
		if swaps := store.swapCount(); swaps > limit/4 {
			t.Errorf("%d writes for %d charges", swaps, limit)
		}
		if got := store.state("team").ForeignEscrows(""); len(got) > 0 {
			t.Errorf("got %v in escrow, want none where everybody is denied", got)
		}
		b.end()
		b.Wait()
	})
}

// watch shows groups the stored ledger, until it is stopped.
func (s *memoryStore) watch(quota string, groups ...*Group) (stop func()) {
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(3 * time.Millisecond):
				for _, group := range groups {
					group.Saw(quota, s.snapshot(quota))
				}
			}
		}
	}()
	return func() { close(done) }
}

func TestDrainReturnsEscrow(t *testing.T) {
	store := newMemoryStore("team")
	paced(t, store, escrowing("a"), func(t *testing.T, group *Group) {
		for i := range 12 {
			if decision, err := group.Reserve(t.Context(), []ledger.Charge{onePod("team", 1000, fmt.Sprint(i))}); !ledger.IsGranted(decision) {
				t.Fatalf("got %v, %v", decision, err)
			}
		}
		if len(store.state("team").ForeignEscrows("")) == 0 || len(store.state("team").Reservations) == 12 {
			t.Fatalf("got %v, want an escrow from which some were granted", store.state("team"))
		}
		group.Drain(t.Context())
		if current := store.state("team"); len(current.ForeignEscrows("")) > 0 || len(current.Reservations) != 12 {
			t.Errorf("got %v and %d in flight, want all recorded and nothing in escrow", current.ForeignEscrows(""), len(current.Reservations))
		}
	})
}

// A replica that holds escrow of a deleted ledger may not know that yet, also if another one has been made since.
func TestImposeOutlivesEscrow(t *testing.T) {
	sealed := newMemoryStore()
	sealed.put("team", ledger.State{Basis: ledger.Basis{Quota: "q"}, Sealed: time.Unix(1, 0)})
	for name, store := range map[string]*memoryStore{"no ledger": newMemoryStore(), "a sealed ledger": sealed} {
		t.Run(name, func(t *testing.T) {
			paced(t, store, escrowing("a"), func(t *testing.T, group *Group) {
				began := time.Now()
				raise := func(draft *ledger.Draft) { draft.SetFence(ledger.Fence{Generation: 9}) }
				if err := group.Impose(t.Context(), "team", "q", raise); err != nil || time.Since(began) < 2200*time.Millisecond {
					t.Errorf("got %v after %v, want it once nothing is granted any more", err, time.Since(began))
				}
			})
		})
	}
}

// A machine knows nothing of the escrow of an earlier machine of the same name.
func TestEachMachineHasItsOwnEscrow(t *testing.T) {
	store := newMemoryStore("team")
	paced(t, store, escrowing("a"), func(t *testing.T, group *Group) {
		holders := map[types.UID]bool{}
		for round := range 2 {
			for i := range 5 {
				charge := onePod("team", 1000, fmt.Sprint(round, "-", i))
				if decision, err := group.Reserve(t.Context(), []ledger.Charge{charge}); !ledger.IsGranted(decision) {
					t.Fatalf("got %v, %v", decision, err)
				}
			}
			for _, escrow := range store.state("team").ForeignEscrows("") {
				holders[escrow.Process] = true
			}
			group.Forget("team")
		}
		if len(holders) != 2 {
			t.Errorf("got escrows of %v, want two holders", holders)
		}
	})
}
