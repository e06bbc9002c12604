// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// watcher records an Observer's events.
type watcher struct {
	mu        sync.Mutex
	conflicts int
	failures  int
	ended     ledger.Ends
}

func (*watcher) Committed(string, int, time.Duration) {}

func (w *watcher) Ended(_ string, ends ledger.Ends) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended.Settled += ends.Settled
	w.ended.Expired += ends.Expired
	w.ended.Released += ends.Released
}

func (w *watcher) Conflicted(string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conflicts++
}

func (w *watcher) Failed(string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failures++
}

func (*watcher) Impossible(_ string, err error) { panic(err) }

// bubble runs a test with its own time, and with a Group that ends with it.
func bubble(t *testing.T, store Store, options Options, test func(t *testing.T, group *Group, seen *watcher)) {
	t.Helper()
	options.CallTimeout, options.EditTimeout = cmp.Or(options.CallTimeout, time.Second), 10*time.Second
	options.MaxWaiting = cmp.Or(options.MaxWaiting, 1000)
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		seen := &watcher{}
		group := New(ctx, clock.RealClock{}, store, seen, options)
		test(t, group, seen)
		stop()
		group.Wait()
	})
}

func inBubble(t *testing.T, store *memoryStore, test func(t *testing.T, group *Group, seen *watcher)) {
	t.Helper()
	bubble(t, store, Options{Options: machine.Options{Pace: 20 * time.Millisecond, PaceEach: time.Millisecond}}, test)
}

// reserveAll charges n pods at the same time, and returns how many were
// granted and denied.
func reserveAll(t *testing.T, n int, reserve func(name string) (ledger.Decision, error)) (granted, denied int) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			decision, err := reserve(fmt.Sprintf("pod-%03d", i))
			mu.Lock()
			defer mu.Unlock()
			switch decision.(type) {
			case ledger.Granted:
				granted++
			case ledger.Denied:
				denied++
			default:
				t.Errorf("pod-%03d: want a decision, got %v, error %v", i, decision, err)
			}
		})
	}
	all.Wait()
	return granted, denied
}

func TestChargesThatWaitShareAWrite(t *testing.T) {
	store := newMemoryStore("team")
	inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
		start := time.Now()
		granted, _ := reserveAll(t, 200, func(name string) (ledger.Decision, error) {
			return group.Reserve(t.Context(), []ledger.Charge{onePod("team", 1000, name)})
		})
		if granted != 200 {
			t.Errorf("want 200 granted, got %d", granted)
		}
		if swaps := store.swapCount(); swaps > 3 {
			t.Errorf("want at most 3 writes for 200 charges at once, got %d", swaps)
		}
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("want all answered within 100ms, took %s", took)
		}
	})
}

func TestConflictsStayInside(t *testing.T) {
	store := newMemoryStore("team")
	inBubble(t, store, func(t *testing.T, group *Group, seen *watcher) {
		store.beforeSwap = func(attempt int) error {
			if attempt%2 == 1 {
				store.put("team", store.state("team")) // another replica is first
			}
			return nil
		}
		granted, denied := reserveAll(t, 50, func(name string) (ledger.Decision, error) {
			return group.Reserve(t.Context(), []ledger.Charge{onePod("team", 20, name)})
		})
		if granted != 20 || denied != 30 || store.reserved("team") != 20 {
			t.Errorf("want 20 granted, 30 denied, 20 reserved; got %d, %d, %d", granted, denied, store.reserved("team"))
		}
		if seen.conflicts == 0 {
			t.Error("want conflicts to have been seen, got none")
		}
	})
}

func TestSeveralQuotasAreChargedInAllOrInNone(t *testing.T) {
	store := newMemoryStore("cpu", "memory", "pods")
	inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
		granted, denied := reserveAll(t, 30, func(name string) (ledger.Decision, error) {
			return group.Reserve(t.Context(), []ledger.Charge{
				onePod("pods", 5, name), onePod("cpu", 100, name), onePod("memory", 7, name),
			})
		})
		if granted > 5 || granted+denied != 30 {
			t.Errorf("want at most 5 granted of 30, got %d granted and %d denied", granted, denied)
		}
		time.Sleep(time.Second) // charges before a refusal are given back
		for _, quota := range []string{"cpu", "memory", "pods"} {
			if held := store.reserved(quota); held != int64(granted) {
				t.Errorf("quota %s: want %d reserved, got %d", quota, granted, held)
			}
		}
	})
}

func TestAProbeReservesNothing(t *testing.T) {
	store := newMemoryStore("team")
	inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
		for range 3 {
			if decision, err := group.Judge(t.Context(), []ledger.Charge{onePod("team", 1, "dry-run")}); !ledger.IsGranted(decision) {
				t.Fatalf("want Granted, got %v, error %v", decision, err)
			}
		}
		if swaps := store.swapCount(); swaps != 0 {
			t.Errorf("want no writes, got %d", swaps)
		}
	})
}

func TestTheEndOfTheGroupAnswersEveryone(t *testing.T) {
	store := newMemoryStore("team")
	store.latency = time.Hour
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		group := New(ctx, clock.RealClock{}, store, &watcher{}, Options{Options: machine.Options{MaxWaiting: 10}, CallTimeout: 2 * time.Hour, EditTimeout: time.Second})
		var waiter sync.WaitGroup
		waiter.Go(func() {
			if decision, err := group.Reserve(t.Context(), []ledger.Charge{onePod("team", 1, "late")}); err == nil {
				t.Errorf("want an error, got %v", decision)
			}
		})
		synctest.Wait()
		stop()
		waiter.Wait()
		group.Wait()
	})
}

func TestAFailureTellsItsCause(t *testing.T) {
	store := newMemoryStore("team")
	store.loadErr = errInjected
	inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := group.Reserve(ctx, []ledger.Charge{onePod("team", 1, "unlucky")})
		if !errors.Is(err, errInjected) || !strings.Contains(err.Error(), "waiting for quota team") {
			t.Errorf("want the store's failure in the error, got %v", err)
		}
	})
}

func TestTroubleIsKnownUntilTheLedgerCanBeReadAndWritten(t *testing.T) {
	store := newMemoryStore("team", "other")
	inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
		var told []string
		group.OnTrouble(func(quota string) { told = append(told, quota) })
		wait := clock.RealClock{}.Sleep
		ask := func() {
			_, _ = group.Judge(t.Context(), []ledger.Charge{onePod("team", 1, "unlucky")})
			_, _ = group.Reserve(t.Context(), []ledger.Charge{onePod("team", 1, "unlucky")})
		}
		set := func(load error, swap func(int) error) {
			store.mu.Lock()
			defer store.mu.Unlock()
			store.loadErr, store.beforeSwap = load, swap
		}
		never := func(int) error { return errInjected }
		ask()
		if trouble := group.Trouble("team"); trouble != nil {
			t.Fatalf("at first: got %+v", trouble)
		}
		set(nil, func(attempt int) error {
			if attempt%2 == 1 {
				return machine.ErrConflict
			}
			return nil
		})
		ask()
		if trouble := group.Trouble("team"); trouble != nil {
			t.Errorf("after conflicts: got %+v", trouble)
		}
		since := clock.RealClock{}.Now()
		set(errInjected, never)
		ask()
		wait(time.Minute)
		trouble := group.Trouble("team")
		if trouble == nil || trouble.Since.Sub(since) > time.Second || !errors.Is(trouble.Err, errInjected) {
			t.Fatalf("a minute later: got %+v, want it since %s", trouble, since)
		}
		set(nil, never)
		wait(time.Minute)
		if trouble := group.Trouble("team"); trouble == nil {
			t.Error("a ledger that can only be read: got no trouble")
		}
		set(nil, nil)
		wait(checkEvery + time.Second)
		if trouble := group.Trouble("team"); trouble != nil {
			t.Errorf("once it can be written: got %+v, though nobody asked", trouble)
		}
		swaps := store.swaps
		wait(time.Minute)
		if store.swaps != swaps {
			t.Errorf("it is written %d times more", store.swaps-swaps)
		}
		if want := []string{"team"}; !slices.Equal(told, want) || group.Trouble("other") != nil {
			t.Errorf("told of %v, want %v", told, want)
		}
	})
}

func TestTroubleEndsWithALedgerThatIsMadeAgain(t *testing.T) {
	store := newMemoryStore("team")
	inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
		wait := clock.RealClock{}.Sleep
		fail := func(with func(int) error) {
			store.mu.Lock()
			defer store.mu.Unlock()
			store.beforeSwap = with
		}
		fail(func(int) error { return errInjected })
		_, _ = group.Reserve(t.Context(), []ledger.Charge{onePod("team", 1, "unlucky")})
		store.remove("team")
		wait(40 * time.Second) // the release is given up
		if group.Trouble("team") == nil {
			t.Error("a ledger that is missing: got no trouble")
		}
		fail(nil)
		anew := ledger.State{Basis: limitsOf("team", 0).Basis, Used: podsList(0)}
		if _, err := group.Replace(t.Context(), "team", machine.Version{}, anew); err != nil {
			t.Fatal(err)
		}
		wait(checkEvery + time.Second)
		if trouble := group.Trouble("team"); trouble != nil {
			t.Errorf("got %+v", trouble)
		}
	})
}
