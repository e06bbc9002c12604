// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package counting

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// ledgerWorld is one quota of config maps: its ledger, its objects and its count, each
// of which learns of the others late.
type ledgerWorld struct {
	hard int64
	// ledgers are all versions of the stored ledger; known is the version that
	// the process knows, and never goes back.
	ledgers []ledger.State
	known   int
	// flying are admitted and not stored yet; stored live.
	flying, stored []string
	// events are the API server's watch events, of which the count has seen so
	// many.
	events []watched
	seen   int
	count  *Count
	names  int
}

// watched is one event of a watch.
type watched struct {
	object runtime.Object
	name   string
	gone   bool
}

func newLedgerWorld(t *rapid.T) *ledgerWorld {
	w := &ledgerWorld{hard: rapid.Int64Range(1, 4).Draw(t, "hard"), count: newListed()}
	mustReplace(w.count, secrets, 1)
	mustReplace(w.count, configMaps, 1)
	w.ledgers = []ledger.State{holding(list("configmaps", "0", "secrets", "0"))}
	return w
}

func (w *ledgerWorld) newest() ledger.State { return w.ledgers[len(w.ledgers)-1] }

func (w *ledgerWorld) write(change func(*ledger.Draft)) {
	draft := ledger.Edit(w.newest())
	change(draft)
	w.ledgers = append(w.ledgers, draft.State())
}

// admit reserves where there is room, as the newest ledger has it.
func (w *ledgerWorld) admit(*rapid.T) {
	state := w.newest()
	used := state.Used["configmaps"]
	if used.Value()+int64(len(state.Reservations)) >= w.hard {
		return
	}
	w.names++
	name := fmt.Sprintf("object-%d", w.names)
	next := ledger.State{Basis: state.Basis, Used: state.Used, Counted: state.Counted, Reservations: maps.Clone(state.Reservations)}
	next.Reservations[held(name).Key()] = held(name)
	w.ledgers = append(w.ledgers, next)
	w.flying = append(w.flying, name)
}

// fail gives back a charge that was admitted and is never going to be stored.
func (w *ledgerWorld) fail(t *rapid.T) {
	if name := take(t, &w.flying); name != "" {
		w.write(func(draft *ledger.Draft) { draft.Release(held(name).Key()) })
	}
}

func (w *ledgerWorld) store(t *rapid.T) {
	if name := take(t, &w.flying); name != "" {
		w.stored = append(w.stored, name)
		w.happen(name, false)
	}
}

func (w *ledgerWorld) remove(t *rapid.T) {
	if name := take(t, &w.stored); name != "" {
		w.happen(name, true)
	}
}

func (w *ledgerWorld) happen(name string, gone bool) {
	version := strconv.Itoa(len(w.events) + 2)
	w.events = append(w.events, watched{object: object(name, version), name: name, gone: gone})
}

// observe lets the count see one event more.
func (w *ledgerWorld) observe(t *rapid.T) {
	if w.seen == len(w.events) {
		return
	}
	next, source := w.events[w.seen], w.count.Source(configMaps)
	apply := source.Set
	if next.gone {
		apply = source.Delete
	}
	if err := apply(next.object, moment); err != nil {
		t.Fatal(err)
	}
	w.seen++
}

func (w *ledgerWorld) settle(*rapid.T) {
	w.count.Read("team", func(view View) {
		w.write(func(draft *ledger.Draft) { draft.Settle(ObservationOf(view)) })
	})
}

// learn lets the process know a newer ledger.
func (w *ledgerWorld) learn(t *rapid.T) {
	w.known = rapid.IntRange(w.known, len(w.ledgers)-1).Draw(t, "known")
}

// look is the balance that people are shown at this moment.
func (w *ledgerWorld) look(t *rapid.T) {
	got := BalanceOf(w.count, "team", basis.Quota, w.ledgers[w.known])
	counted, gone := map[string]bool{}, map[string]bool{}
	for _, event := range w.events[:w.seen] {
		counted[event.name], gone[event.name] = !event.gone, event.gone
	}
	maps.DeleteFunc(counted, func(_ string, ok bool) bool { return !ok })
	unseen := 0
	for _, held := range w.ledgers[w.known].Reservations {
		if !counted[held.Name] && !gone[held.Name] {
			unseen++
		}
	}
	used, reserved := value(got.Used), value(got.Reserved)
	if used != int64(len(counted)) || reserved != int64(unseen) {
		t.Fatalf("shown %d used and %d reserved, want %d and %d: each object once", used, reserved, len(counted), unseen)
	}

	hard := corev1.ResourceList{"configmaps": *resource.NewQuantity(w.hard, resource.DecimalSI)}
	if torn := Torn(hard, got.Used, got.Reserved); torn != (used+reserved > w.hard) {
		t.Fatalf("%d used and %d reserved of %d: torn is %v", used, reserved, w.hard, torn)
	}
	// A second look when the newest ledger has arrived sees figures of one
	// moment.
	if current := BalanceOf(w.count, "team", basis.Quota, w.newest()); Torn(hard, current.Used, current.Reserved) {
		t.Fatalf("%d used and %d reserved of %d, by the newest ledger", value(current.Used), value(current.Reserved), w.hard)
	}
}

func value(list corev1.ResourceList) int64 {
	amount := list["configmaps"]
	return amount.Value()
}

// take removes one of the names and returns it; empty if there is none.
func take(t *rapid.T, names *[]string) string {
	if len(*names) == 0 {
		return ""
	}
	i := rapid.IntRange(0, len(*names)-1).Draw(t, "which")
	name := (*names)[i]
	*names = slices.Delete(*names, i, i+1)
	return name
}

// However late the count learns of objects, and the process of ledgers, an object
// is shown once.
func TestEachObjectIsShownOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newLedgerWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"admit": w.admit, "fail": w.fail, "store": w.store, "remove": w.remove, "observe": w.observe,
			"settle": w.settle, "learn": w.learn, "": w.look,
		})
	})
}
