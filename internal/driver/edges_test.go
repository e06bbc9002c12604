// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// reserveLater charges in the background; the channel has the answer.
func reserveLater(ctx context.Context, group *Group, charges ...ledger.Charge) <-chan operation {
	answer := make(chan operation, 1)
	go func() {
		decision, err := group.Reserve(ctx, charges)
		answer <- operation{decision: decision, err: err, end: clock.RealClock{}.Now()}
	}()
	return answer
}

// All that are about to be denied share one read.
func TestDenialsShareARead(t *testing.T) {
	store := newMemoryStore("team")
	store.put("team", ledger.State{Basis: limitsOf("team", 1).Basis, Used: podsList(1)})
	inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
		_, denied := reserveAll(t, 200, func(name string) (ledger.Decision, error) {
			return group.Reserve(t.Context(), []ledger.Charge{onePod("team", 1, name)})
		})
		if denied != 200 || len(store.loads) > 3 || store.swapCount() > 0 {
			t.Errorf("want 200 denied by at most 3 reads and no write, got %d by %d and %d",
				denied, len(store.loads), store.swapCount())
		}
	})
}

func TestChargesBeforeARefusalAreGivenBack(t *testing.T) {
	store := newMemoryStore("cpu", "pods")
	store.beforeSwap = func(attempt int) error {
		if attempt == 1 { // cpu is being charged: meanwhile another client takes the last pod
			store.put("pods", ledger.State{Basis: limitsOf("pods", 0).Basis, Used: podsList(5)})
		}
		return nil
	}
	inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
		decision, err := group.Reserve(t.Context(), []ledger.Charge{onePod("pods", 5, "p"), onePod("cpu", 5, "p")})
		if denied, ok := decision.(ledger.Denied); !ok || denied.Quota != "pods" || err != nil {
			t.Errorf("want pods to deny it, got %v, error %v", decision, err)
		}
		passUntilQuiet(time.Second)
		// The write of cpu, that of pods which meets a conflict, and the release.
		if attempts, held := store.swapCount(), store.reserved("cpu"); attempts != 3 || held != 0 {
			t.Errorf("want cpu charged and given back, got %d writes and %d reserved", attempts, held)
		}
	})
}

// The first quota has been charged when the request's time is up at the second.
func TestChargesBeforeTheDeadlineAreGivenBack(t *testing.T) {
	store := newMemoryStore("cpu", "pods")
	store.latency = 100 * time.Millisecond
	inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
		// Two reads for the probes, the write of cpu, and half of that of pods.
		ctx, cancel := context.WithTimeout(t.Context(), 350*time.Millisecond)
		defer cancel()
		if _, err := group.Reserve(ctx, []ledger.Charge{onePod("cpu", 5, "p"), onePod("pods", 5, "p")}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("want the deadline's error, got %v", err)
		}
		passUntilQuiet(time.Second)
		for _, quota := range []string{"cpu", "pods"} {
			if held := store.reserved(quota); held != 0 {
				t.Errorf("quota %s: want nothing reserved, got %d", quota, held)
			}
		}
	})
}

func TestTheFirstQuotaByNameAnswers(t *testing.T) {
	store := newMemoryStore("a", "b", "c")
	inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
		decision, err := group.Reserve(t.Context(), []ledger.Charge{onePod("c", 0, "p"), onePod("b", 0, "p"), onePod("a", 1, "p")})
		if denied, ok := decision.(ledger.Denied); !ok || denied.Quota != "b" || err != nil {
			t.Errorf("want b to deny it, got %v, error %v", decision, err)
		}
		if writes := store.swapCount(); writes != 0 {
			t.Errorf("want nothing written, got %d writes", writes)
		}
	})
}

func TestKnowsWhatItWroteAndSaw(t *testing.T) {
	store := newMemoryStore("team")
	inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
		want := func(version uint64, want bool) {
			t.Helper()
			if got := group.Knows("team", version); got != want {
				t.Errorf("knows version %d: got %t, want %t", version, got, want)
			}
		}
		want(1, false)
		group.Saw("team", store.stored["team"])
		want(1, true)
		want(2, false)
		if decision, err := group.Reserve(t.Context(), []ledger.Charge{onePod("team", 9, "p")}); !ledger.IsGranted(decision) {
			t.Fatalf("want Granted, got %v, error %v", decision, err)
		}
		want(2, true)
	})
}

func TestAChangeIsNeverTurnedAway(t *testing.T) {
	paced(t, newMemoryStore("team"), Options{Options: machine.Options{MaxWaiting: 1}}, func(t *testing.T, group *Group) {
		var waiters []<-chan operation
		for i := range 5 {
			waiters = append(waiters, reserveLater(t.Context(), group, onePod("team", 9, fmt.Sprint(i))))
		}
		synctest.Wait()
		if err := group.Edit(t.Context(), "team", func(*ledger.Draft) {}); err != nil {
			t.Errorf("want the change applied while %d wait, got %v", len(waiters), err)
		}
		for _, waiter := range waiters {
			<-waiter
		}
	})
}

func TestAnUnchangedLedgerIsNotWritten(t *testing.T) {
	store := newMemoryStore("team")
	inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
		err := group.Edit(t.Context(), "team", func(draft *ledger.Draft) { draft.Release(ledger.Key{UID: "nobody"}) })
		if err != nil || store.swapCount() != 0 {
			t.Errorf("want no write and no error, got %d writes, error %v", store.swapCount(), err)
		}
	})
}

// The end may come at any moment, while some charge and others begin to.
func TestTheEndMayComeAtAnyMoment(t *testing.T) {
	for after := range 12 {
		store := newMemoryStore("team")
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			group := New(ctx, clock.RealClock{}, store, &watcher{}, Options{Options: machine.Options{Pace: 3 * time.Millisecond, MaxWaiting: 100}, CallTimeout: time.Second, EditTimeout: time.Second})
			var clients sync.WaitGroup
			for i := range 20 {
				clients.Go(func() {
					pass(time.Duration(i) * time.Millisecond)
					decision, err := group.Reserve(t.Context(), []ledger.Charge{onePod("team", 100, fmt.Sprint(i))})
					if (err == nil) != ledger.IsGranted(decision) {
						t.Errorf("want Granted or an error, got %v, error %v", decision, err)
					}
				})
			}
			pass(time.Duration(after) * 2 * time.Millisecond)
			stop()
			group.Wait()
			clients.Wait()
		})
	}
}

// The write of a charge happened, its reply was lost, and by the time it is
// judged again the quota's spec has changed: a refused charge must hold nothing.
func TestARefusalAfterALostReplyHoldsNothing(t *testing.T) {
	for name, change := range map[string]func(ledger.State) ledger.State{
		"the ledger is for a newer spec by then": func(state ledger.State) ledger.State {
			state.Generation++
			return state
		},
		"the ledger is full by then": func(state ledger.State) ledger.State {
			state.Used = podsList(5)
			return state
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := newMemoryStore("team")
			store.afterSwap = func(attempt int) error {
				if attempt > 1 {
					return nil
				}
				store.lockedPut("team", change(store.stored["team"].State))
				return errInjected
			}
			inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
				if got := <-reserveLater(t.Context(), group, onePod("team", 5, "p")); got.err != nil || ledger.IsGranted(got.decision) {
					t.Fatalf("want it refused, got %v, error %v", got.decision, got.err)
				}
				passUntilQuiet(time.Second)
				if held := store.reserved("team"); held != 0 {
					t.Errorf("want nothing reserved, got %d", held)
				}
			})
		})
	}
}

// The caller of a charge has just gone when the process stops.
func TestTheRestIsWrittenBeforeTheEnd(t *testing.T) {
	store := newMemoryStore("team")
	inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
		if decision, err := group.Reserve(t.Context(), []ledger.Charge{onePod("team", 9, "p")}); !ledger.IsGranted(decision) {
			t.Fatalf("want Granted, got %v, error %v", decision, err)
		}
		group.release([]ledger.Charge{onePod("team", 9, "p")})
		group.Drain(t.Context())
		if held := store.reserved("team"); held != 0 {
			t.Errorf("%d pods are reserved, want none", held)
		}
	})
}
