// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// newSettledBench has a ledger that has counted all that is there.
func newSettledBench(t *testing.T) *expiryBench {
	t.Helper()
	b := newExpiryBench(t)
	b.holds(ledger.Fence{})
	b.follows()
	b.counts()
	return b
}

// follows looks at the namespaces' objects, to the end.
func (b *expiryBench) follows() {
	b.t.Helper()
	b.Joins.Follow("red")
	synctest.Wait()
}

// wantSettled wants the ledger to count namespaces up to a version by now.
func (b *expiryBench) wantSettled(version uint64) {
	b.t.Helper()
	synctest.Wait()
	current := NewCounter(b.watching.Count).Observe("red", b.Group.Current("red"))
	if current == nil || current.Touched[ledger.Namespaces] < version {
		b.t.Errorf("want namespaces counted up to %d, got %+v", version, current)
	}
}

// wantNotSettled wants a version of a namespace not to be counted.
func (b *expiryBench) wantNotSettled(version uint64) {
	b.t.Helper()
	synctest.Wait()
	current := NewCounter(b.watching.Count).Observe("red", b.Group.Current("red"))
	if current != nil && current.Touched[ledger.Namespaces] >= version {
		b.t.Errorf("want version %d not counted, got %v", version, current.Touched)
	}
}

// join has namespaces come under quota red.
func (b *expiryBench) join(number int) {
	for i := range number {
		b.watching.Count.SetNamespace(fmt.Sprint("n", i), map[string]string{"team": "red"}, nil, uint64(100+i), clock.RealClock{}.Now())
	}
}

// A namespace may be seen before its objects, because each resource has its own
// watch.
func TestANamespaceIsCountedWithAllThatItBrought(t *testing.T) {
	for name, test := range map[string]struct{ namespaces, lists int }{
		"one":  {namespaces: 1, lists: 1},
		"few":  {namespaces: fewNamespaces, lists: fewNamespaces},
		"many": {namespaces: fewNamespaces + 1, lists: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newSettledBench(t)
				b.wantSettled(1)
				b.watching.cluster.asked()

				b.watching.cluster.hide("n0", "late") // in version 12
				b.join(test.namespaces)
				b.wantNotSettled(100)
				b.follows()
				b.wantNotSettled(100)
				if _, lists := b.watching.cluster.asked(); lists["v1alpha1"] != test.lists {
					t.Errorf("want %d lists, got %v", test.lists, lists)
				}
				b.watching.cluster.show()
				b.wantSettled(uint64(99 + test.namespaces))
			})
		})
	}
}

// A new leader has hundreds of quotas whose namespaces all joined.
func TestQuotasWithManyNamespacesShareLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newSettledBench(t)
		b.watching.cluster.asked()
		b.watching.cluster.set(func() { b.watching.cluster.listing = 100 * time.Millisecond })
		var looks sync.WaitGroup
		for i := range 10 * looksAtOnce {
			looks.Go(func() {
				if err := b.Joins.prove(t.Context(), fmt.Sprint("q", i), make([]counting.Joined, fewNamespaces+1), []schema.GroupResource{gadgets}); err != nil {
					t.Error(err)
				}
			})
		}
		looks.Wait()
		if _, lists := b.watching.cluster.asked(); lists["v1alpha1"] > 2 {
			t.Errorf("want two lists at most, got %v", lists)
		}
	})
}

func TestALookThatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newSettledBench(t)
		b.watching.cluster.set(func() { b.watching.cluster.forbidden = true })
		b.join(1)
		b.follows()
		b.wantNotSettled(100)
		b.watching.cluster.set(func() { b.watching.cluster.forbidden = false })
		clock.RealClock{}.Sleep(proveAgain)
		b.wantSettled(100)
	})
}

// One resource that can't be listed keeps the others waiting for five seconds at most.
func TestANamespaceIsCountedAsItIsIfWhatItBroughtCannotBeListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newSettledBench(t)
		b.watching.cluster.set(func() { b.watching.cluster.forbidden = true })
		b.join(1)
		for range 4 {
			b.follows()
			b.wantNotSettled(100)
			clock.RealClock{}.Sleep(time.Second)
			b.watching.Count.Advance(clock.RealClock{}.Now(), time.Hour)
		}
		clock.RealClock{}.Sleep(time.Second)
		b.watching.Count.Advance(clock.RealClock{}.Now(), time.Hour)
		b.wantSettled(100)
	})
}

// Namespaces that join during a look are looked at once it has ended.
func TestAJoinDuringALookDoesNotWaitForAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newSettledBench(t)
		b.watching.cluster.set(func() { b.watching.cluster.listing = 100 * time.Millisecond })
		b.join(1)
		b.follows()
		clock.RealClock{}.Sleep(50 * time.Millisecond)
		b.join(2)
		b.follows()
		clock.RealClock{}.Sleep(150 * time.Millisecond)
		b.wantSettled(101)
		b.Joins.mu.Lock()
		defer b.Joins.mu.Unlock()
		if len(b.Joins.running) > 0 {
			t.Errorf("want no look any more, got %v", b.Joins.running)
		}
	})
}

// A resource that isn't served any more can't be counted, and has no objects.
func TestANamespaceBringsNothingThatIsNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newSettledBench(t)
		b.watching.cluster.hide("n0", "late")
		b.join(1)
		b.follows()
		b.wantNotSettled(100)
		b.watching.Count.DropSource(gadgets)
		b.wantSettled(100)
	})
}

// counts has the ledger settle by the count.
func (b *expiryBench) counts() {
	b.t.Helper()
	synctest.Wait()
	err := b.rewrites(func(state *ledger.State) {
		draft := ledger.Edit(*state)
		b.watching.Count.Read("red", func(view counting.View) { draft.Settle(counting.ObservationOf(view)) })
		*state = draft.State()
	})
	if err != nil {
		b.t.Fatal(err)
	}
	stored, err := b.store.Load(b.t.Context(), "red", machine.Load{})
	if err != nil {
		b.t.Fatal(err)
	}
	b.Group.Saw("red", stored)
}
