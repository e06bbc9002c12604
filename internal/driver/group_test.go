// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
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

// watcher records what an Observer is told.
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

// inBubble runs a test with its own time, and with a Group that ends with it.
func inBubble(t *testing.T, store *memoryStore, test func(t *testing.T, group *Group, seen *watcher)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		seen := &watcher{}
		group := New(ctx, clock.RealClock{}, store, seen, Options{Options: machine.Options{Pace: 20 * time.Millisecond, PaceEach: time.Millisecond, MaxWaiting: 1000}, CallTimeout: time.Second, EditTimeout: 10 * time.Second})
		test(t, group, seen)
		stop()
		group.Wait()
	})
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

func TestOneHundredChargesAtALimitOfTen(t *testing.T) {
	inBubble(t, newMemoryStore("team"), func(t *testing.T, group *Group, _ *watcher) {
		granted, denied := reserveAll(t, 100, func(name string) (ledger.Decision, error) {
			return group.Reserve(t.Context(), []ledger.Charge{onePod("team", 10, name)})
		})
		if granted != 10 || denied != 90 {
			t.Errorf("want 10 granted and 90 denied, got %d and %d", granted, denied)
		}
	})
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

func TestALoneChargeCommitsAtOnce(t *testing.T) {
	store := newMemoryStore("team")
	inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
		for i := range 3 {
			start := time.Now()
			decision, err := group.Reserve(t.Context(), []ledger.Charge{onePod("team", 10, fmt.Sprint(i))})
			if !ledger.IsGranted(decision) {
				t.Fatalf("want Granted, got %v, error %v", decision, err)
			}
			// The first also reads the ledger.
			if took, most := time.Since(start), 2*store.latency; took > most {
				t.Errorf("charge %d: want an answer within %s, took %s", i, most, took)
			}
			time.Sleep(time.Second)
		}
	})
}

func TestADenialRestsOnAReadThatBeganAfterTheRequest(t *testing.T) {
	store := newMemoryStore("team")
	inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
		if decision, err := group.Reserve(t.Context(), []ledger.Charge{onePod("team", 1, "first")}); !ledger.IsGranted(decision) {
			t.Fatalf("want Granted, got %v, error %v", decision, err)
		}
		// Another replica settles: the pod came and went, and nobody told this one.
		store.put("team", ledger.State{Basis: limitsOf("team", 1).Basis, Used: podsList(0)})
		arrived := time.Now()
		decision, err := group.Reserve(t.Context(), []ledger.Charge{onePod("team", 1, "second")})
		if !ledger.IsGranted(decision) {
			t.Fatalf("there is room: want Granted, got %v, error %v", decision, err)
		}
		if last := store.loads[len(store.loads)-1]; last.Before(arrived) {
			t.Errorf("want a read after %s, the last was at %s", arrived, last)
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

func TestLostRepliesAndFailuresChargeOnce(t *testing.T) {
	store := newMemoryStore("team")
	inBubble(t, store, func(t *testing.T, group *Group, seen *watcher) {
		store.afterSwap = failing(func(attempt int) bool { return attempt%3 == 1 })
		store.beforeSwap = failing(func(attempt int) bool { return attempt%3 == 2 })
		granted, denied := reserveAll(t, 50, func(name string) (ledger.Decision, error) {
			return group.Reserve(t.Context(), []ledger.Charge{onePod("team", 20, name)})
		})
		if granted != 20 || denied != 30 || store.reserved("team") != 20 {
			t.Errorf("want 20 granted, 30 denied, 20 reserved; got %d, %d, %d", granted, denied, store.reserved("team"))
		}
		if seen.failures == 0 {
			t.Error("want failures to have been seen, got none")
		}
	})
}

func failing(when func(attempt int) bool) func(int) error {
	return func(attempt int) error {
		if when(attempt) {
			return errInjected
		}
		return nil
	}
}

// A refusal that rests on a charge before it in the batch must be judged again
// when that charge's write fails: here its waiter has given up by then.
func TestADenialDoesNotRestOnAChargeThatWasNotWritten(t *testing.T) {
	store := newMemoryStore("team")
	inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
		impatient, giveUp := context.WithCancel(t.Context())
		store.beforeSwap = func(attempt int) error {
			if attempt > 1 {
				return nil
			}
			giveUp()
			return errInjected
		}
		var both sync.WaitGroup
		both.Go(func() {
			if _, err := group.Reserve(impatient, []ledger.Charge{onePod("team", 1, "first")}); !errors.Is(err, context.Canceled) {
				t.Errorf("first: want it to give up, got error %v", err)
			}
		})
		synctest.Wait() // the first is in the queue before the second
		both.Go(func() {
			decision, err := group.Reserve(t.Context(), []ledger.Charge{onePod("team", 1, "second")})
			if !ledger.IsGranted(decision) {
				t.Errorf("second: want Granted, got %v, error %v", decision, err)
			}
		})
		both.Wait()
	})
}

func TestAWaiterThatGivesUpHoldsNothing(t *testing.T) {
	store := newMemoryStore("team")
	store.latency = 100 * time.Millisecond
	inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
		// Long enough for the write to be under way, too short for its reply.
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := group.Reserve(ctx, []ledger.Charge{onePod("team", 1, "impatient")})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("want the deadline's error, got %v", err)
		}
		if took := time.Since(start); took != 150*time.Millisecond {
			t.Errorf("want an answer at the deadline, after 150ms, took %s", took)
		}
		time.Sleep(time.Second)
		if held := store.reserved("team"); held != 0 {
			t.Errorf("want nothing reserved, got %d", held)
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
		time.Sleep(time.Second) // what was charged before a refusal is given back
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

func TestAQuotaWithoutALedgerIsUndecided(t *testing.T) {
	inBubble(t, newMemoryStore(), func(t *testing.T, group *Group, _ *watcher) {
		decision, err := group.Reserve(t.Context(), []ledger.Charge{onePod("team", 1, "early")})
		if undecided, ok := decision.(ledger.Undecided); !ok || undecided.Reason != ledger.NotCounted || err != nil {
			t.Errorf("want Undecided NotCounted, got %v, error %v", decision, err)
		}
	})
}

func TestTooManyWaitersAreTurnedAway(t *testing.T) {
	store := newMemoryStore("team")
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		group := New(ctx, clock.RealClock{}, store, &watcher{}, Options{Options: machine.Options{MaxWaiting: 2}, CallTimeout: time.Second, EditTimeout: time.Second})
		var served sync.WaitGroup
		errs := make(chan error, 10)
		for i := range 10 {
			served.Go(func() {
				_, err := group.Reserve(ctx, []ledger.Charge{onePod("team", 100, fmt.Sprint(i))})
				errs <- err
			})
		}
		served.Wait()
		close(errs)
		turnedAway := 0
		for err := range errs {
			if errors.Is(err, machine.ErrBusy) {
				turnedAway++
			} else if err != nil {
				t.Errorf("want machine.ErrBusy or none, got %v", err)
			}
		}
		if turnedAway == 0 {
			t.Error("want some of 10 turned away where 2 may wait, got none")
		}
		stop()
		group.Wait()
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
		wait(40 * time.Second) // what was to be released is given up
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
