// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// voids are the ways in which a client other than a replica may change a ledger.
func voids() map[string]func(*memoryStore) {
	return map[string]func(*memoryStore){
		"deleted": func(store *memoryStore) { store.remove("team") },
		"edited": func(store *memoryStore) {
			store.put("team", ledger.State{})
			store.mu.Lock()
			defer store.mu.Unlock()
			edited := store.stored["team"]
			edited.Edited = true
			store.stored["team"] = edited
		},
	}
}

// seeing shows the group the stored ledger, or that there is none.
func seeing(store *memoryStore, group *Group) {
	if snapshot := store.snapshot("team"); !snapshot.Version.IsZero() {
		group.Saw("team", snapshot)
		return
	}
	group.Gone("team")
}

func settled(pods int64) func(*ledger.Draft) {
	source := schema.GroupResource{Resource: "pods"}
	return func(draft *ledger.Draft) {
		draft.Settle(ledger.Observation{
			Basis: limitsOf("team", 9).Basis, Used: podsList(pods),
			Sources: map[corev1.ResourceName][]schema.GroupResource{corev1.ResourcePods: {source}},
			Counted: map[schema.GroupResource]uint64{source: 1, ledger.Namespaces: 1},
			Seen:    func(ledger.Reservation) bool { return false },
		})
	}
}

func wantUndecided(t *testing.T, decision ledger.Decision, err error, reason ledger.Reason) {
	t.Helper()
	if undecided, ok := decision.(ledger.Undecided); !ok || undecided.Reason != reason || err != nil {
		t.Errorf("want Undecided %s, got %#v, error %v", reason, decision, err)
	}
}

// Whether the change was seen in a watch or is met by the write, nothing is
// granted, and no count makes a ledger that lacks charges in flight.
func TestNothingIsGrantedOrWrittenWhereTheLedgerIsVoid(t *testing.T) {
	for name, harm := range voids() {
		for way, see := range map[string]func(*memoryStore, *Group){"seen": seeing, "met": func(*memoryStore, *Group) {}} {
			t.Run(name+", "+way, func(t *testing.T) {
				store := newMemoryStore("team")
				inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
					if decision, err := group.Reserve(t.Context(), []ledger.Charge{onePod("team", 9, "in-flight")}); !ledger.IsGranted(decision) {
						t.Fatalf("want Granted, got %v, error %v", decision, err)
					}
					harm(store)
					see(store, group)
					void := store.snapshot("team").Version
					decision, err := group.Reserve(t.Context(), []ledger.Charge{onePod("team", 9, "late")})
					wantUndecided(t, decision, err, ledger.NotCounted)
					// Both in one batch, while the one before is under way.
					first := reserveLater(t.Context(), group, onePod("team", 9, "first"))
					pass(time.Millisecond)
					later := reserveLater(t.Context(), group, onePod("team", 9, "later"))
					if err := group.Edit(t.Context(), "team", settled(0)); !errors.Is(err, machine.ErrNoLedger) {
						t.Errorf("a change is not made: got %v, want ErrNoLedger", err)
					}
					for _, answer := range []<-chan operation{first, later} {
						got := <-answer
						wantUndecided(t, got.decision, got.err, ledger.NotCounted)
					}
					if got := store.snapshot("team").Version; got != void {
						t.Errorf("want version %v left as it is, got %v", void, got)
					}
				})
			})
		}
	}
}

// Charges that wait while the ledger is rebuilt are judged on the new one.
func TestAReplacedLedgerIsJudgedOn(t *testing.T) {
	for name, harm := range voids() {
		t.Run(name, func(t *testing.T) {
			store := newMemoryStore("team")
			inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
				if decision, err := group.Reserve(t.Context(), []ledger.Charge{onePod("team", 1, "in-flight")}); !ledger.IsGranted(decision) {
					t.Fatalf("want Granted, got %v, error %v", decision, err)
				}
				before := store.state("team")
				harm(store)
				seeing(store, group)
				version, err := group.Replace(t.Context(), "team", store.snapshot("team").Version, before)
				if err != nil || !group.Knows("team", version.ResourceVersion) {
					t.Fatalf("want it replaced and known, got version %v, error %v", version, err)
				}
				decision, err := group.Reserve(t.Context(), []ledger.Charge{onePod("team", 1, "late")})
				if _, denied := decision.(ledger.Denied); !denied || err != nil {
					t.Errorf("want Denied: the one in flight has the only place, got %v, error %v", decision, err)
				}
			})
		})
	}
}

// A process may be the last to hear that the ledger was rebuilt.
func TestAnEditOfALedgerThatWasSeenToBeVoidIsOfTheOneThatReplacedIt(t *testing.T) {
	for name, harm := range voids() {
		t.Run(name, func(t *testing.T) {
			store := newMemoryStore("team")
			inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
				before := store.state("team")
				harm(store)
				seeing(store, group)
				if _, err := store.Swap(t.Context(), "team", store.snapshot("team").Version, before); err != nil {
					t.Fatal(err)
				}
				raise := func(draft *ledger.Draft) { draft.SetFence(ledger.Fence{Generation: 9}) }
				if err := group.Edit(t.Context(), "team", raise); err != nil {
					t.Fatal(err)
				}
				if current := store.state("team").Fence.Generation; current != 9 {
					t.Errorf("want the stored ledger edited, got a fence for %d", current)
				}
			})
		})
	}
}

func TestImpose(t *testing.T) {
	uid := limitsOf("team", 9).Quota
	impose := func(t *testing.T, group *Group, uid types.UID) error {
		t.Helper()
		return group.Impose(t.Context(), "team", uid, func(draft *ledger.Draft) { draft.SetFence(ledger.Fence{Generation: 9}) })
	}
	t.Run("changes the ledger", func(t *testing.T) {
		store := newMemoryStore("team")
		inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
			if err := impose(t, group, store.state("team").Quota); err != nil || store.state("team").Fence.Generation != 9 {
				t.Errorf("got %+v, %v", store.state("team"), err)
			}
		})
	})
	t.Run("makes a sealed ledger if there is none", func(t *testing.T) {
		store := newMemoryStore()
		inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
			err := impose(t, group, uid)
			if current := store.state("team"); err != nil || current.Quota != uid || current.Fence.Generation != 9 || current.Sealed.IsZero() {
				t.Errorf("got %+v, %v", current, err)
			}
		})
	})
	t.Run("changes the ledger that somebody else makes meanwhile", func(t *testing.T) {
		store := newMemoryStore()
		store.beforeSwap = func(int) error {
			store.beforeSwap = nil
			store.put("team", ledger.State{Basis: ledger.Basis{Quota: uid}})
			return nil
		}
		inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
			if err := impose(t, group, uid); err != nil || store.state("team").Fence.Generation != 9 || !store.state("team").Sealed.IsZero() {
				t.Errorf("got %+v, %v", store.state("team"), err)
			}
		})
	})
	t.Run("fails if somebody edited the ledger", func(t *testing.T) {
		store := newMemoryStore("team")
		inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
			voids()["edited"](store)
			if err := impose(t, group, store.state("team").Quota); !errors.Is(err, machine.ErrConflict) {
				t.Errorf("got %v, want a conflict", err)
			}
		})
	})
	t.Run("fails if the ledger is another quota's", func(t *testing.T) {
		store := newMemoryStore("team")
		inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
			if err := impose(t, group, "other"); err == nil || store.state("team").Fence.Generation != 0 {
				t.Errorf("got %+v, %v", store.state("team"), err)
			}
		})
	})
}

func TestReplaceYieldsToWhoeverWasFirst(t *testing.T) {
	store := newMemoryStore("team")
	inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
		for _, previous := range []machine.Version{{}, {ResourceVersion: 77}} {
			if _, err := group.Replace(t.Context(), "team", previous, ledger.State{}); !errors.Is(err, machine.ErrConflict) {
				t.Errorf("in place of version %v: want a conflict, got %v", previous, err)
			}
		}
	})
}

func TestASealedLedgerGrantsNothingAndSettles(t *testing.T) {
	store := newMemoryStore()
	store.put("team", ledger.State{Basis: limitsOf("team", 9).Basis, Used: podsList(1), Sealed: time.Now()})
	inBubble(t, store, func(t *testing.T, group *Group, _ *watcher) {
		decision, err := group.Reserve(t.Context(), []ledger.Charge{onePod("team", 9, "p")})
		wantUndecided(t, decision, err, ledger.Sealed)
		if err := group.Edit(t.Context(), "team", settled(3)); err != nil {
			t.Fatal(err)
		}
		current := store.state("team")
		if used := current.Used.Pods().Value(); used != 3 || current.Sealed.IsZero() {
			t.Errorf("want 3 used and the ledger still sealed, got %d, sealed at %s", used, current.Sealed)
		}
		decision, err = group.Judge(t.Context(), []ledger.Charge{onePod("team", 9, "dry-run")})
		wantUndecided(t, decision, err, ledger.Sealed)
	})
}
