// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledgerstore

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

func surgerOf(name string) ledger.Surger {
	return ledger.Surger{
		UID: "7e1c6a52-3d1b-4f0e-9a55-0a8f6b0c9b11", Kind: "Deployment", Namespace: "team-a", Name: name, Since: time.Unix(1_800_000_000, 0),
	}
}

// surgingLedger is one in which a workload surges while the surge is lowered.
func surgingLedger(t require) *quotav1.QuotaLedger {
	state := someState()
	web := surgerOf("web")
	state.Surgers = map[types.UID]ledger.Surger{web.UID: web}
	state.Fence = ledger.Fence{
		Generation: 4, Hard: list("pods", "10", "requests.nvidia.com/gpu", "8"), Surge: list("pods", "2"), Until: time.Unix(1_800_000_060, 0),
	}
	return stored(t, state)
}

func TestSurgeIsReadAsItWasStored(t *testing.T) {
	snapshot, err := Snapshot(surgingLedger(t))
	if err != nil || snapshot.Edited {
		t.Fatalf("got %+v, error %v", snapshot, err)
	}
	web := surgerOf("web")
	if diff := cmp.Diff(map[types.UID]ledger.Surger{web.UID: web}, snapshot.State.Surgers); diff != "" {
		t.Errorf("workloads (-want,+got):\n%s", diff)
	}
	want := ledger.Fence{
		Generation: 4, Hard: list("pods", "10", "requests.nvidia.com/gpu", "8"), Surge: list("pods", "2"), Until: time.Unix(1_800_000_060, 0),
	}
	if diff := cmp.Diff(want, snapshot.State.Fence); diff != "" {
		t.Errorf("fence (-want,+got):\n%s", diff)
	}
	if len(snapshot.State.Reservations) != len(someState().Reservations) {
		t.Errorf("a workload is taken for a reservation: %v", snapshot.State.Reservations)
	}
}

func TestAnySurgeIsReadAsItWasStored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		surger := ledger.Surger{
			UID: types.UID(anyUID().Draw(t, "uid")), Kind: rapid.StringMatching(`[A-Z][A-Za-z]{0,20}`).Draw(t, "kind"),
			Namespace: anyPathSegment().Draw(t, "namespace"), Name: anyPathSegment().Draw(t, "name"),
			Since: time.Unix(rapid.Int64Range(0, 1<<34).Draw(t, "since"), 0),
		}
		text := encodeRecord(foldSurger(surger))
		if at := len(text) + len(`"",`); surger.Size() < at {
			t.Errorf("%q takes %d bytes, and its size is %d", text, at, surger.Size())
		}
		state, undecoded := Decode(written, []string{text})
		if diff := cmp.Diff(map[types.UID]ledger.Surger{surger.UID: surger}, state.Surgers); diff != "" || len(undecoded)+len(state.Reservations) > 0 {
			t.Errorf("stored as %q, and %v and %v were read (-want,+got):\n%s", text, undecoded, state.Reservations, diff)
		}
		fence := ledger.Fence{Generation: 1, Hard: anyAmounts().Draw(t, "hard"), Surge: anyAmounts().Draw(t, "surge"), Until: surger.Since}
		read, err := decodeFence(encodeFence(fence))
		if diff := cmp.Diff(fence, read, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("stored as %q, error %v (-want,+got):\n%s", encodeFence(fence), err, diff)
		}
	})
}

// A release that doesn't know surge binds by the limits of a fence all the same, and leaves the surge in the ledger.
func TestAnOlderReleaseLosesTheSurgeAlone(t *testing.T) {
	object := surgingLedger(t)
	part := strings.Split(object.Entries.Fence, " ")
	if len(part) != 3 {
		t.Fatalf("the fence %q has %d fields", object.Entries.Fence, len(part))
	}
	hard, err := decodeAmounts(part[2])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(list("pods", "10", "requests.nvidia.com/gpu", "8", "surge/pods", "2"), hard); diff != "" {
		t.Errorf("the limits that it reads (-want,+got):\n%s", diff)
	}
	if again := encodeFence(ledger.Fence{Generation: 4, Hard: hard, Until: time.Unix(1_800_000_060, 0)}); again != object.Entries.Fence {
		t.Errorf("it stores %q in place of %q", again, object.Entries.Fence)
	}
	folded := foldSurger(surgerOf("web"))
	if folded.Doubtful || len(folded.Amounts) > 0 {
		t.Errorf("a workload reserves something, or is taken for a suspect: %+v", folded)
	}
	if text := encodeRecord(folded); text != encodeRecord(mustDecode(t, text)) {
		t.Errorf("it stores %q otherwise", text)
	}
}

func mustDecode(t *testing.T, text string) ledger.Reservation {
	t.Helper()
	read, err := decodeRecord(text)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestAnEditOfSurgeIsNoticed(t *testing.T) {
	for name, edit := range map[string]func(*quotav1.QuotaLedgerEntries){
		"the surge of a fence is raised": func(e *quotav1.QuotaLedgerEntries) {
			e.Fence = strings.Replace(e.Fence, "surge/pods=2", "surge/pods=9", 1)
		},
		"it is taken away": func(e *quotav1.QuotaLedgerEntries) { e.Fence = strings.Replace(e.Fence, ",surge/pods=2", "", 1) },
		"a workload is named otherwise": func(e *quotav1.QuotaLedgerEntries) {
			for at := range e.Reservations {
				e.Reservations[at] = strings.Replace(e.Reservations[at], "Deployment%2Fweb", "Deployment%2Fapi", 1)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := surgingLedger(t)
			before := fmt.Sprint(object.Entries)
			edit(&object.Entries)
			if fmt.Sprint(object.Entries) == before {
				t.Fatalf("nothing is edited: %s", before)
			}
			if snapshot, err := Snapshot(object); err != nil || !snapshot.Edited {
				t.Errorf("want it edited, got %+v, error %v", snapshot, err)
			}
		})
	}
}

func TestASurgerTakesNoMoreThanItsSize(t *testing.T) {
	for _, name := range []string{"web", "", "-", "/", "a b", "\xff", strings.Repeat("é", 100), strings.Repeat("a", 253)} {
		surger := surgerOf(name)
		if size, taken := surger.Size(), len(encodeRecord(foldSurger(surger)))+len(`"",`); size < taken || size > taken+32 {
			t.Errorf("name %q: got a size of %d, and it takes %d", name, size, taken)
		}
	}
}

// Workloads are named beside as many reservations as there may be.
func TestAFullLedgerThatSurgesIsBelowAMebibyte(t *testing.T) {
	limits := ledger.Limits{Basis: ledger.Basis{Quota: "q"}, Hard: list("pods", "1"), Surge: list("pods", "100k")}
	draft := ledger.Edit(ledger.State{Basis: limits.Basis, Used: list("pods", "1")})
	long, reserved := strings.Repeat("/", 240), 0
	for ; ; reserved++ {
		one := reservationOf(long, fmt.Sprint(long, reserved), "pods", "1")
		one.UID = types.UID(fmt.Sprintf("e2a1ad51-59d1-4a1f-8f52-%012d", reserved))
		replaces := ledger.Surger{UID: one.UID, Kind: "Deployment", Namespace: long, Name: long, Since: one.Expiry}
		decision := draft.Reserve(ledger.Charge{Limits: limits, Reservation: one, Replaces: replaces})
		if undecided, ok := decision.(ledger.Undecided); ok && undecided.Reason == ledger.Full {
			break
		} else if !ledger.IsGranted(decision) {
			t.Fatalf("got %+v", decision)
		}
	}
	if named := len(draft.Peek().Surgers); named != ledger.MaxSurgers {
		t.Errorf("%d workloads are named", named)
	}
	text, err := json.Marshal(encode("team", draft.State(), edition{"u", 2}))
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 1<<20 {
		t.Errorf("got %d reservations in %d bytes", reserved, len(text))
	}
}

// Every text of a fence that can be read can be stored and read again, and is the same.
func FuzzDecodeFence(f *testing.F) {
	f.Add("4 1800000060 pods=10,surge/pods=2")
	f.Add("4 1800000060 surge/=1,surge/surge/pods=2,surge=3")
	f.Add("0 1 -")
	f.Fuzz(func(t *testing.T, text string) {
		fence, err := decodeFence(text)
		if err != nil {
			return
		}
		again, err := decodeFence(encodeFence(fence))
		if err != nil {
			t.Fatalf("%q was read, and stored as %q, which can't be: %v", text, encodeFence(fence), err)
		}
		if diff := cmp.Diff(fence, again, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%q was read, and stored as %q (-read,+read again):\n%s", text, encodeFence(fence), diff)
		}
	})
}
