// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// doubted are the names of the doubtful reservations in the ledger of quota red.
func (b *expiryBench) doubted() string {
	b.t.Helper()
	stored, err := b.store.Load(b.t.Context(), "red", machine.Load{})
	if err != nil {
		b.t.Fatal(err)
	}
	var names []string
	for reservation := range maps.Values(stored.State.Reservations) {
		if reservation.Doubtful {
			names = append(names, reservation.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestARequestWhoseObjectDoesNotAppearIsDoubted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, forbidden := newExpiryBench(t), errors.New("forbidden")
		b.watching.cluster.hide("a", "slow") // from the watch
		b.holds(ledger.Fence{}, held("missing", ""), held("slow", ""), held("hidden", ""), held("not updated", "11"))
		b.before["hidden"] = func() error { return forbidden }
		b.sees(doubtAfter)
		young := held("young", "")
		if err := b.Group.Edit(t.Context(), "red", func(draft *ledger.Draft) { draft.Admit(young) }); err != nil {
			t.Fatal(err)
		}
		if next, err := b.doubt(t.Context(), "red", b.sight("red")); !errors.Is(err, forbidden) || next != doubtAgain {
			t.Errorf("got %v, and another look after %s", err, next)
		}
		if got := b.doubted(); got != "missing not updated" {
			t.Errorf("in doubt is %q", got)
		}
	})
}

func TestAYoungReservationIsLookedForInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newExpiryBench(t)
		if next, err := b.doubt(t.Context(), "red", b.sight("red")); next != 0 || err != nil {
			t.Errorf("nothing is held: got a look after %s, %v", next, err)
		}
		b.holds(ledger.Fence{}, held("young", ""))
		b.before["young"] = func() error { return errors.New("looked for too early") }
		next, err := b.doubt(t.Context(), "red", b.sight("red"))
		if next != doubtAfter || err != nil {
			t.Fatalf("got a look after %s, %v", next, err)
		}
		delete(b.before, "young")
		clock.RealClock{}.Sleep(next)
		if _, err := b.doubt(t.Context(), "red", b.sight("red")); err != nil || b.doubted() != "young" {
			t.Errorf("in doubt is %q, %v", b.doubted(), err)
		}
		clock.RealClock{}.Sleep(time.Minute)
		if next, err := b.doubt(t.Context(), "red", b.sight("red")); next != 0 || err != nil {
			t.Errorf("all is in doubt: got a look after %s, %v", next, err)
		}
	})
}

// However many requests fail, the API server is asked at its pace.
func TestLooksForWhatDoesNotAppearAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newExpiryBench(t)
		var failed []ledger.Reservation
		for i := range 2 * doubtsAtOnce {
			failed = append(failed, held(fmt.Sprintf("failed-%03d", i), ""))
		}
		b.holds(ledger.Fence{}, failed...)
		b.sees(doubtAfter)
		for _, want := range []int{doubtsAtOnce, 2 * doubtsAtOnce} {
			if _, err := b.doubt(t.Context(), "red", b.sight("red")); err != nil {
				t.Fatal(err)
			}
			if got := len(strings.Fields(b.doubted())); got != want {
				t.Errorf("got %d in doubt, want %d", got, want)
			}
		}
	})
}

// A new leader counts for seconds, and settles for more.
func TestAnObjectThatIsToBeSettledIsNotLookedFor(t *testing.T) {
	for name, test := range map[string]struct {
		object  string
		forgets bool
	}{
		"it is counted":                      {object: "g1"},
		"its resource is still being listed": {object: "young", forgets: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newExpiryBench(t)
				b.before[test.object] = func() error { return errors.New("looked for") }
				if test.forgets {
					b.watching.Count.DropSource(gadgets)
				}
				b.holds(ledger.Fence{}, held(test.object, ""))
				b.sees(doubtAfter)
				if next, err := b.doubt(t.Context(), "red", b.sight("red")); next != doubtAgain || err != nil || b.doubted() != "" {
					t.Errorf("got a look after %s, %v, and in doubt is %q", next, err, b.doubted())
				}
			})
		})
	}
}
