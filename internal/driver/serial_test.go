// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"pgregory.net/rapid"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// Every answer is the answer of some order of the charges, one after the other:
// an order in which a charge that was answered comes before a charge that was
// made later. And in the end exactly the granted charges are held.
func TestAnswersAreThoseOfSomeSerialOrder(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		plan := anyPlan().Draw(rt, "plan")
		var run history
		synctest.Test(t, func(t *testing.T) { run = plan.play(t) })
		if !run.isSerial(plan.hard) {
			rt.Fatalf("no serial order gives these answers:\n%s", run)
		}
		if diff := cmp.Diff(run.granted(), run.held); diff != "" {
			rt.Fatalf("held in the end (-granted,+held):\n%s\n%s", diff, run)
		}
		for _, done := range run.operations {
			seen[fmt.Sprintf("%T", done.decision)]++
		}
	})
	for _, kind := range []string{"ledger.Granted", "ledger.Denied", "<nil>"} {
		if seen[kind] == 0 {
			t.Errorf("no charge ended as %s: the property shows too little", kind)
		}
	}
}

// plan is a run of a few charges, by one or two replicas, over a store that
// fails now and then.
type plan struct {
	hard         int64
	latency      time.Duration
	charges      []plannedCharge
	loads, swaps []fault
	// watched: replicas see each other's writes, a little late.
	watched bool
	// withheld is how long a denial is.
	withheld time.Duration
}

type plannedCharge struct {
	replica int
	at      time.Duration
	// patience of the waiter; zero for any length.
	patience time.Duration
	name     string
	pods     int64
}

func milliseconds(least, most int) *rapid.Generator[time.Duration] {
	return rapid.Map(rapid.IntRange(least, most), func(n int) time.Duration { return time.Duration(n) * time.Millisecond })
}

func anyPlan() *rapid.Generator[plan] {
	faults := rapid.SliceOfN(rapid.SampledFrom([]fault{none, none, conflict, unreachable, replyLost}), 0, 5)
	return rapid.Custom(func(t *rapid.T) plan {
		return plan{
			hard:    rapid.Int64Range(2, 6).Draw(t, "hard"),
			latency: milliseconds(1, 8).Draw(t, "latency"),
			charges: rapid.SliceOfN(anyCharge(), 2, 7).Draw(t, "charges"),
			loads:   faults.Draw(t, "loads"), swaps: faults.Draw(t, "swaps"),
			watched:  rapid.Bool().Draw(t, "watched"),
			withheld: rapid.OneOf(rapid.Just(time.Duration(0)), milliseconds(1, 40)).Draw(t, "withheld"),
		}
	})
}

func anyCharge() *rapid.Generator[plannedCharge] {
	return rapid.Custom(func(t *rapid.T) plannedCharge {
		return plannedCharge{
			replica:  rapid.IntRange(0, 1).Draw(t, "replica"),
			at:       milliseconds(0, 40).Draw(t, "at"),
			patience: rapid.OneOf(rapid.Just(time.Duration(0)), milliseconds(1, 40)).Draw(t, "patience"),
			name:     rapid.StringOfN(rapid.RuneFrom([]rune("abcd")), 1, 1, 1).Draw(t, "name"),
			pods:     rapid.Int64Range(1, 3).Draw(t, "pods"),
		}
	})
}

// operation is one charge as its caller saw it.
type operation struct {
	charge     ledger.Charge
	start, end time.Time
	decision   ledger.Decision
	err        error
}

type history struct {
	operations []operation
	// held are the reservations that are left when all is quiet, sorted.
	held []types.UID
}

func (p plan) play(t *testing.T) history {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	store := &faultyStore{memoryStore: newMemoryStore("team"), loads: p.loads, swaps: p.swaps}
	store.latency = p.latency
	replicas := [2]*Group{}
	for i := range replicas {
		replicas[i] = New(ctx, clock.RealClock{}, store, &watcher{}, Options{Options: machine.Options{Pace: 10 * time.Millisecond, PaceEach: time.Millisecond, Patience: p.withheld, MaxWaiting: 100}, CallTimeout: time.Second, EditTimeout: 10 * time.Second})
	}
	var watches sync.WaitGroup
	if p.watched {
		watches.Go(func() { watch(ctx, store.memoryStore, replicas[:]) })
	}
	operations := p.chargeAll(replicas)
	passUntilQuiet(10 * time.Second) // until abandoned charges are released
	stop()
	watches.Wait()
	for _, replica := range replicas {
		replica.Wait()
	}
	held := slices.Collect(maps.Values(store.state("team").Reservations))
	return history{operations: operations, held: sortedUIDs(held)}
}

// watch shows each replica the ledger of a few milliseconds ago.
func watch(ctx context.Context, store *memoryStore, replicas []*Group) {
	for ctx.Err() == nil {
		store.mu.Lock()
		past := store.stored["team"]
		store.mu.Unlock()
		pass(7 * time.Millisecond)
		for _, replica := range replicas {
			replica.Saw("team", past)
		}
	}
}

func (p plan) chargeAll(replicas [2]*Group) []operation {
	operations := make([]operation, len(p.charges))
	var waiters sync.WaitGroup
	for i, planned := range p.charges {
		waiters.Go(func() {
			pass(planned.at)
			operations[i] = planned.reserve(replicas[planned.replica], p.hard, i)
		})
	}
	waiters.Wait()
	return operations
}

func (c plannedCharge) reserve(group *Group, hard int64, number int) operation {
	ctx := context.Background()
	if c.patience > 0 {
		patient, cancel := context.WithTimeout(ctx, c.patience)
		defer cancel()
		ctx = patient
	}
	charge := onePod("team", hard, c.name)
	charge.Reservation.UID = types.UID(fmt.Sprint("uid", number))
	charge.Reservation.Amounts = podsList(c.pods)
	done := operation{charge: charge, start: clock.RealClock{}.Now()}
	done.decision, done.err = group.Reserve(ctx, []ledger.Charge{charge})
	done.end = clock.RealClock{}.Now()
	return done
}

func (h history) granted() []types.UID {
	var granted []ledger.Reservation
	for _, done := range h.operations {
		if done.err == nil && ledger.IsGranted(done.decision) {
			granted = append(granted, done.charge.Reservation)
		}
	}
	return sortedUIDs(granted)
}

func (h history) String() string {
	text := ""
	for i, done := range h.operations {
		text += fmt.Sprintf("%d: %s pods for %s, from %s to %s: %+v, error %v\n", i, done.charge.Reservation.Amounts.Pods(),
			done.charge.Reservation.Name, done.start.Format("05.000"), done.end.Format("05.000"), done.decision, done.err)
	}
	return text
}

// isSerial looks for a serial order.
func (h history) isSerial(hard int64) bool {
	search := search{operations: h.operations, limits: limitsOf("team", hard), dead: map[progress]bool{}}
	return search.from(progress{}, ledger.State{Basis: limitsOf("team", 0).Basis, Used: podsList(0)})
}

// progress of a search, as sets of operations, by their bits.
type progress struct{ applied, released uint }

// search tries every order of the operations that real time allows. A charge
// whose waiter gave up may have been written at any time from its start, and
// may have been given back at any time after that.
type search struct {
	operations []operation
	limits     ledger.Limits
	// dead are the points from which no order leads on.
	dead map[progress]bool
}

func (s *search) from(at progress, state ledger.State) bool {
	if s.allAnswered(at) {
		return true
	}
	if s.dead[at] {
		return false
	}
	for i := range s.operations {
		if s.apply(i, at, state) || s.release(i, at, state) {
			return true
		}
	}
	s.dead[at] = true
	return false
}

func (s *search) allAnswered(at progress) bool {
	for i, done := range s.operations {
		if done.err == nil && at.applied&(1<<i) == 0 {
			return false
		}
	}
	return true
}

// apply tries the operation next: it must not have begun after another one,
// that is still to come, was answered.
func (s *search) apply(i int, at progress, state ledger.State) bool {
	next := s.operations[i]
	if at.applied&(1<<i) != 0 {
		return false
	}
	for j, other := range s.operations {
		if other.err == nil && at.applied&(1<<j) == 0 && other.end.Before(next.start) {
			return false
		}
	}
	draft := ledger.Edit(state)
	decision := draft.Reserve(ledger.Charge{Limits: s.limits, Reservation: next.charge.Reservation})
	if next.err == nil && !cmp.Equal(decision, next.decision) || next.err != nil && !ledger.IsGranted(decision) {
		return false
	}
	at.applied |= 1 << i
	return s.from(at, draft.State())
}

func (s *search) release(i int, at progress, state ledger.State) bool {
	if s.operations[i].err == nil || at.applied&(1<<i) == 0 || at.released&(1<<i) != 0 {
		return false
	}
	draft := ledger.Edit(state)
	draft.Release(s.operations[i].charge.Reservation.Key())
	at.released |= 1 << i
	return s.from(at, draft.State())
}

func sortedUIDs(reservations []ledger.Reservation) []types.UID {
	uids := make([]types.UID, 0, len(reservations))
	for _, reservation := range reservations {
		uids = append(uids, reservation.UID)
	}
	return slices.Sorted(slices.Values(uids))
}

// pass lets time pass within the bubble.
func pass(by time.Duration) { <-clock.RealClock{}.After(by) }

// passUntilQuiet lets time pass, and then all goroutines do the work that is due
// at that very moment. One goroutine at a time may call it.
func passUntilQuiet(by time.Duration) {
	pass(by)
	synctest.Wait()
}
