// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	corev1 "k8s.io/api/core/v1"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

const patience = 50 * time.Millisecond

func patient() Options {
	return Options{Options: machine.Options{Pace: 40 * time.Millisecond, PaceEach: 2 * time.Millisecond, Patience: patience}}
}

// settleTo is a settle after which so many pods are used.
func settleTo(pods int64) func(*ledger.Draft) {
	return func(draft *ledger.Draft) {
		source := schema.GroupResource{Resource: "pods"}
		draft.Settle(ledger.Observation{
			Basis: limitsOf("team", 1).Basis, Used: podsList(pods),
			Sources: map[corev1.ResourceName][]schema.GroupResource{corev1.ResourcePods: {source}},
			Counted: map[schema.GroupResource]uint64{source: 1, ledger.Namespaces: 1},
			Seen:    func(ledger.Reservation) bool { return false },
		})
	}
}

// full is a store of a quota of which so many pods are used.
func full(pods int64) *memoryStore {
	store := newMemoryStore("team")
	store.put("team", ledger.State{Basis: limitsOf("team", pods).Basis, Used: podsList(pods)})
	return store
}

func TestRoomThatIsMadeMeanwhileIsGranted(t *testing.T) {
	for name, free := range map[string]func(t *testing.T, store *memoryStore, group *Group){
		"by a settle in this process": func(t *testing.T, _ *memoryStore, group *Group) {
			t.Helper()
			if err := group.Edit(t.Context(), "team", settleTo(0)); err != nil {
				t.Error(err)
			}
		},
		"by another process, seen": func(_ *testing.T, store *memoryStore, group *Group) {
			store.put("team", ledger.State{Basis: limitsOf("team", 1).Basis, Used: podsList(0)})
			group.Saw("team", store.stored["team"])
		},
		"by another process, unseen": func(_ *testing.T, store *memoryStore, _ *Group) {
			store.put("team", ledger.State{Basis: limitsOf("team", 1).Basis, Used: podsList(0)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := full(1)
			paced(t, store, patient(), func(t *testing.T, group *Group) {
				group.Saw("team", store.stored["team"])
				answer := reserveLater(t.Context(), group, onePod("team", 1, "waits"))
				pass(10 * time.Millisecond)
				free(t, store, group)
				if got := <-answer; !ledger.IsGranted(got.decision) {
					t.Errorf("want Granted, got %v, error %v", got.decision, got.err)
				}
				if held := store.reserved("team"); held != 1 {
					t.Errorf("want 1 reserved, got %d", held)
				}
			})
		})
	}
}

// The charge that has waited longest gets the room, not the one at the right
// moment.
func TestRoomGoesToWhoeverWaitsLongest(t *testing.T) {
	store := full(1)
	paced(t, store, patient(), func(t *testing.T, group *Group) {
		group.Saw("team", store.stored["team"])
		first := reserveLater(t.Context(), group, onePod("team", 1, "first"))
		pass(20 * time.Millisecond)
		change := make(chan error, 1)
		go func() { change <- group.Edit(t.Context(), "team", settleTo(0)) }()
		second := reserveLater(t.Context(), group, onePod("team", 1, "second"))
		if got := <-first; !ledger.IsGranted(got.decision) {
			t.Errorf("first: want Granted, got %v, error %v", got.decision, got.err)
		}
		if got := <-second; ledger.IsGranted(got.decision) {
			t.Error("second: want Denied, got Granted")
		}
		if err := <-change; err != nil {
			t.Error(err)
		}
	})
}

// A storm of charges that can't fit is denied faster: 100 clients that come back
// at once would otherwise be held to one denial each in the patience.
func TestTheMoreWaitTheLessPatience(t *testing.T) {
	options := patient()
	options.Patience = 500 * time.Millisecond
	paced(t, full(1), options, func(t *testing.T, group *Group) {
		var mu sync.Mutex
		denied, end := 0, clock.RealClock{}.Now().Add(time.Second)
		var clients sync.WaitGroup
		for client := range 100 {
			clients.Go(func() {
				for i := 0; (clock.RealClock{}).Now().Before(end); i++ {
					_, _ = group.Reserve(t.Context(), []ledger.Charge{onePod("team", 1, fmt.Sprint(client, "-", i))})
					mu.Lock()
					denied++
					mu.Unlock()
				}
			})
		}
		clients.Wait()
		if denied < 300 { // 200 with the whole patience each
			t.Errorf("%d denied in a second, want at least 300", denied)
		}
	})
}

func TestAParkedChargeObeysItsContext(t *testing.T) {
	store := full(1)
	paced(t, store, patient(), func(t *testing.T, group *Group) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		start := clock.RealClock{}.Now()
		got := <-reserveLater(ctx, group, onePod("team", 1, "impatient"))
		if !errors.Is(got.err, context.DeadlineExceeded) || got.end.Sub(start) != 20*time.Millisecond {
			t.Errorf("want the deadline's error after 20ms, got %v, error %v after %s", got.decision, got.err, got.end.Sub(start))
		}
		if err := group.Edit(t.Context(), "team", settleTo(0)); err != nil {
			t.Fatal(err)
		}
		passUntilQuiet(time.Second)
		if held := store.reserved("team"); held != 0 {
			t.Errorf("want nothing reserved for who has gone, got %d", held)
		}
	})
}

// The charge that gets neither must give back the room that it held for a moment,
// and the other must not be denied because of that.
func TestOfTwoThatWantTheLastOfTwoQuotasOneGetsBoth(t *testing.T) {
	store := newMemoryStore("cpu", "pods")
	paced(t, store, patient(), func(t *testing.T, group *Group) {
		charges := func(name string) []ledger.Charge {
			return []ledger.Charge{onePod("pods", 1, name), onePod("cpu", 1, name)}
		}
		a, b := reserveLater(t.Context(), group, charges("a")...), reserveLater(t.Context(), group, charges("b")...)
		granted := 0
		for _, answer := range []<-chan operation{a, b} {
			if got := <-answer; ledger.IsGranted(got.decision) {
				granted++
			}
		}
		passUntilQuiet(time.Second)
		if granted != 1 || store.reserved("cpu") != 1 || store.reserved("pods") != 1 {
			t.Errorf("want one to get both, got %d granted, %d and %d reserved", granted, store.reserved("cpu"), store.reserved("pods"))
		}
	})
}
