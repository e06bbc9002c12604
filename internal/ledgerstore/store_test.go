// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledgerstore

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

func anyState() *rapid.Generator[ledger.State] {
	return rapid.Custom(func(t *rapid.T) ledger.State {
		state := ledger.State{
			Basis:   ledger.Basis{Quota: "the quota's UID", Generation: rapid.Int64Range(0, 99).Draw(t, "generation"), Digest: "d1ge57"},
			Used:    anyAmounts().Draw(t, "used"),
			Counted: map[schema.GroupResource]uint64{},
			Joined:  rapid.Uint64().Draw(t, "joined"), Asked: rapid.Uint64().Draw(t, "asked"),
			Reservations: map[ledger.Key]ledger.Reservation{}, Escrows: map[ledger.EscrowKey]ledger.Escrow{}, Suspects: map[string]ledger.Suspect{},
		}
		for _, source := range []schema.GroupResource{{Resource: "pods"}, {Group: "apps", Resource: "deployments"}} {
			if rapid.Bool().Draw(t, source.Resource) {
				state.Counted[source] = rapid.Uint64().Draw(t, "version")
			}
		}
		if rapid.Bool().Draw(t, "sealed") {
			state.Sealed = time.Unix(rapid.Int64Range(1, 1<<32).Draw(t, "sealed at"), 0)
		}
		if rapid.Bool().Draw(t, "unlisted") {
			state.Unlisted = sets.New(schema.GroupResource{Resource: "secrets"})
		}
		state.Forgotten = ledger.Forgotten(rapid.Uint64Range(0, 1<<62).Draw(t, "forgotten"))
		for _, reservation := range rapid.SliceOfN(anyReservation(), 0, 4).Draw(t, "reservations") {
			if reservation.Doubtful && len(reservation.Amounts) == 0 {
				state.Suspects[reservation.Namespace] = ledger.Suspect{
					Object: reservation.Object, Attempt: reservation.Attempt, Expiry: reservation.Expiry,
				}
				continue
			}
			state.Reservations[reservation.Key()] = reservation
		}
		number := rapid.IntRange(0, 1<<40)
		for range rapid.IntRange(0, 2).Draw(t, "escrows") {
			escrow := ledger.Escrow{
				EscrowKey: ledger.EscrowKey{Process: types.UID(anyUID().Draw(t, "process")), Number: number.Draw(t, "number")},
				Holder:    rapid.StringMatching(`[a-z0-9-]{1,9}`).Draw(t, "holder"), Renewal: number.Draw(t, "renewal"),
				Recalled: rapid.Bool().Draw(t, "recalled"), Amounts: anyAmounts().Draw(t, "escrow"), Expiry: time.Unix(1_900_000_000, 0),
			}
			state.Escrows[escrow.EscrowKey] = escrow
		}
		return state
	})
}

// stored is a ledger as the API server returns it.
func stored(t require, state ledger.State) *quotav1.QuotaLedger {
	written := encode("team", state, edition{"u", 4})
	written.ResourceVersion, written.Generation, written.UID = "17", 4, "u"
	text, err := json.Marshal(written)
	if err != nil {
		t.Fatal(err)
	}
	read := &quotav1.QuotaLedger{}
	if err := json.Unmarshal(text, read); err != nil {
		t.Fatal(err)
	}
	return read
}

// require has the methods that a test and a check of a property have in common.
type require interface{ Fatal(args ...any) }

// Replicas of two releases share a ledger.
func TestWhatTheReleaseBeforeReadsIsStored(t *testing.T) {
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	key := ledger.EscrowKey{Process: "p-1", Number: 2}
	state := ledger.State{
		Basis:    ledger.Basis{Quota: "q", Generation: 1},
		Counted:  map[schema.GroupResource]uint64{{Resource: "pods"}: 5},
		Unlisted: sets.New(schema.GroupResource{Group: "apps", Resource: "deployments"}), Forgotten: 7, Joined: 3, Asked: 4,
		Escrows: map[ledger.EscrowKey]ledger.Escrow{key: {
			EscrowKey: key, Holder: "replica-1", Renewal: 9, Recalled: true, Amounts: list("pods", "3"), Expiry: time.Unix(1900000000, 0),
		}},
		Suspects: map[string]ledger.Suspect{"a": {
			Object: ledger.Object{Resource: pods, Namespace: "a", Name: "web", UID: "u"}, Attempt: "t", Expiry: time.Unix(1900000000, 0),
		}},
	}
	entries := stored(t, state).Entries
	if diff := cmp.Diff([]string{
		"p-1 2 recalled quota.sharedquota.dev/v1/escrows - replica-1%2Fp-1%2F2%2F9 1900000000 pods=3",
		"u t - /v1/pods a web 1900000000? -",
	}, entries.Reservations); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{
		"pods": "5", "deployments.apps": "4611686018427387904", "namespaces": "9223372036854775815",
		"joined.namespaces": "3", "asked.namespaces": "4",
	}, entries.Counted); diff != "" {
		t.Errorf("counted (-want,+got):\n%s", diff)
	}
	for _, odd := range []string{
		"p-1 2 - quota.sharedquota.dev/v1/escrows - replica-1 1900000000 pods=3",
		"p-1 two - quota.sharedquota.dev/v1/escrows - replica-1%2Fp-1%2F2%2F9 1900000000 pods=3",
	} {
		if _, undecoded := Decode(written, []string{odd}); len(undecoded) != 1 {
			t.Errorf("%q was decoded", odd)
		}
	}
}

func TestAnyLedgerIsReadAsItWasStored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyState().Draw(t, "state")
		got, err := Snapshot(stored(t, want))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(machine.Snapshot{Version: machine.Version{ResourceVersion: 17, Generation: 4, UID: "u"}, State: want}, got,
			cmpopts.IgnoreUnexported(ledger.State{}), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("ledger (-want,+got):\n%s", diff)
		}
	})
}

// A write without a change must not differ from the one before.
func TestTheSameLedgerIsStoredTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := anyState().Draw(t, "state")
		if diff := cmp.Diff(encode("team", state, edition{"u", 2}), encode("team", state, edition{"u", 2})); diff != "" {
			t.Fatalf("stored twice (-once,+again):\n%s", diff)
		}
	})
}

func TestALedgerBelongsToItsQuota(t *testing.T) {
	object := encode("team", ledger.State{Basis: ledger.Basis{Quota: "uid"}}, edition{generation: 1})
	want := []metav1.OwnerReference{{
		APIVersion: "quota.sharedquota.dev/v1", Kind: "ClusterResourceQuota", Name: "team", UID: "uid", Controller: ptr.To(true),
	}}
	if diff := cmp.Diff(want, object.OwnerReferences); diff != "" {
		t.Errorf("owners (-want,+got):\n%s", diff)
	}
	if object.Name != "team" {
		t.Errorf("name: got %s, want team", object.Name)
	}
}

func TestALedgerOfANewerOperatorIsAnError(t *testing.T) {
	for name, test := range map[string]struct {
		entries quotav1.QuotaLedgerEntries
		want    string
	}{
		"it is from a newer operator": {
			entries: quotav1.QuotaLedgerEntries{Encoding: 3},
			want:    "ledger team has encoding 3, this operator knows up to 2: upgrade it",
		},
		"what a newer operator says in it is none of this one's business": {
			entries: quotav1.QuotaLedgerEntries{Encoding: 12, Reservations: []string{"{}", "pods=1 in another order"}},
			want:    "ledger team has encoding 12, this operator knows up to 2: upgrade it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := &quotav1.QuotaLedger{ObjectMeta: metav1.ObjectMeta{Name: "team"}, Entries: test.entries}
			object.Entries.Checksum = checksum("", edition{}, &object.Entries)
			got, err := Snapshot(object)
			if err == nil {
				t.Fatalf("want an error, got %+v", got)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("error: got %q, want %q in it", err, test.want)
			}
		})
	}
}

// No request waits for good for a ledger that can't be read, even if an operator wrote it.
func TestAnEntryThatCannotBeReadMakesALedgerAnEditedOne(t *testing.T) {
	for name, entries := range map[string]quotav1.QuotaLedgerEntries{
		"a reservation":                {Reservations: []string{"u id - - /v1/pods ns name 1900000000 pods=1"}},
		"how far a source was counted": {Counted: map[string]string{"pods": "far"}},
		"a fence":                      {Fence: "tomorrow"},
	} {
		t.Run(name, func(t *testing.T) {
			object := &quotav1.QuotaLedger{ObjectMeta: metav1.ObjectMeta{Name: "team"}, Entries: entries}
			object.Entries.Encoding = written
			object.Entries.Checksum = checksum("", edition{}, &object.Entries)
			if got, err := Snapshot(object); err != nil || !got.Edited || len(got.State.Reservations) > 0 {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// storeThat answers every write with an error.
func storeThat(t *testing.T, err error) *Store {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := quotav1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return New(interceptor.NewClient(nil, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return err
		},
		Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
			object.SetResourceVersion("5")
			object.SetGeneration(1)
			object.SetUID("u")
			return err
		},
		Update: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.UpdateOption) error {
			object.SetResourceVersion(object.GetResourceVersion() + "0")
			object.SetGeneration(4)
			object.SetUID("u")
			return err
		},
	}))
}

func TestSwap(t *testing.T) {
	read := machine.Version{ResourceVersion: 7, Generation: 3, UID: "u"}
	ledgers := quotav1.GroupVersion.WithResource("quotaledgers").GroupResource()
	for name, test := range map[string]struct {
		previous machine.Version
		answer   error
		want     machine.Version
		conflict bool
		rejected bool
	}{
		"the first one is created":                     {want: machine.Version{ResourceVersion: 5, Generation: 1, UID: "u"}},
		"a later one replaces what was read":           {previous: read, want: machine.Version{ResourceVersion: 70, Generation: 4, UID: "u"}},
		"another writer has created it":                {answer: apierrors.NewAlreadyExists(ledgers, "team"), conflict: true},
		"another writer has replaced it":               {previous: read, answer: apierrors.NewConflict(ledgers, "team", nil), conflict: true},
		"it has been deleted":                          {previous: read, answer: apierrors.NewNotFound(ledgers, "team"), conflict: true},
		"the reply is lost: it may have been written":  {previous: read, answer: context.DeadlineExceeded},
		"the API server is busy, which isn't conflict": {previous: read, answer: apierrors.NewTooManyRequests("busy", 1)},
		"an entry isn't as it has to be": {
			previous: read, answer: apierrors.NewInvalid(schema.GroupKind{Kind: "QuotaLedger"}, "team", nil), rejected: true,
		},
		"it is too large": {previous: read, answer: apierrors.NewRequestEntityTooLargeError("limit is 3145728"), rejected: true},
	} {
		t.Run(name, func(t *testing.T) {
			version, err := storeThat(t, test.answer).Swap(t.Context(), "team", test.previous, ledger.State{})
			if version != test.want && err == nil {
				t.Errorf("version: got %v, want %v", version, test.want)
			}
			if conflict := errors.Is(err, machine.ErrConflict); conflict != test.conflict || !errors.Is(err, test.answer) {
				t.Errorf("error: got %v, want conflict %v and %v within", err, test.conflict, test.answer)
			}
			if rejected := errors.Is(err, machine.ErrRejected); rejected != test.rejected {
				t.Errorf("error: got %v, want rejected %v", err, test.rejected)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	ledgers := quotav1.GroupVersion.WithResource("quotaledgers").GroupResource()
	for name, test := range map[string]struct{ answer, want error }{
		"there is none":             {answer: apierrors.NewNotFound(ledgers, "team")},
		"the API server is silent":  {answer: context.DeadlineExceeded, want: context.DeadlineExceeded},
		"the operator isn't let in": {answer: errForbidden, want: errForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot, err := storeThat(t, test.answer).Load(t.Context(), "team", machine.Load{Spec: true})
			if !errors.Is(err, test.want) {
				t.Errorf("error: got %v, want %v", err, test.want)
			}
			if !snapshot.Version.IsZero() {
				t.Errorf("version: got %v, want none", snapshot.Version)
			}
		})
	}
}

// To read the quota costs the API server more than to read the ledger.
func TestTheSpecIsReadOnlyIfAsked(t *testing.T) {
	store := New(interceptor.NewClient(nil, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
			if _, isLedger := object.(*quotav1.QuotaLedger); isLedger {
				return nil
			}
			return errForbidden
		},
	}))
	if snapshot, err := store.Load(t.Context(), "team", machine.Load{}); err != nil || snapshot.Spec != nil {
		t.Errorf("the ledger: got spec %v, error %v", snapshot.Spec, err)
	}
	if _, err := store.Load(t.Context(), "team", machine.Load{Spec: true}); !errors.Is(err, errForbidden) {
		t.Errorf("with the spec: got error %v, want %v", err, errForbidden)
	}
}

// An edited ledger is no error: it is replaced, and no charge has to wait for
// that longer than for a count.
func TestAnEditedLedgerIsLoadedEmpty(t *testing.T) {
	got, err := storeThat(t, nil).Load(t.Context(), "team", machine.Load{Spec: true}) // it has no checksum
	if want := (machine.Snapshot{Edited: true, Spec: &machine.Spec{}}); err != nil || !cmp.Equal(want, got, cmpopts.IgnoreUnexported(ledger.State{})) {
		t.Errorf("got %+v, error %v, want %+v", got, err, want)
	}
}

var errForbidden = errors.New("forbidden")
