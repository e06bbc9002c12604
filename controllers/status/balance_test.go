// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// reserves puts charges of one config map each, for objects of these names, into
// the ledger that this process knows, in place of the present ones.
func (b *bench) reserves(names ...string) {
	known := b.Group.Current("team")
	state := ledger.State{
		Basis: known.Basis, Used: known.Used, Counted: known.Counted, Reservations: map[ledger.Key]ledger.Reservation{},
	}
	for _, name := range names {
		reservation := ledger.Reservation{
			Object:  ledger.Object{Resource: configMaps.WithVersion("v1"), Namespace: "a", Name: name, UID: types.UID(name)},
			Amounts: list("configmaps", "1"), Expiry: moment.Add(time.Minute),
		}
		state.Reservations[reservation.Key()] = reservation
	}
	b.Group.Gone("team")
	b.Group.Saw("team", machine.Snapshot{Version: machine.Version{ResourceVersion: 2}, State: state})
}

func TestAnObjectIsEitherUsedOrReserved(t *testing.T) {
	for name, test := range map[string]struct {
		counted  int // config maps a, b, c and so on
		reserved []string
		want     corev1.ResourceList
	}{
		"one that isn't counted yet is reserved":       {counted: 1, reserved: []string{"z"}, want: list("configmaps", "1")},
		"one that is counted isn't reserved any more":  {counted: 3, reserved: []string{"c"}},
		"of several, those that aren't counted remain": {counted: 3, reserved: []string{"b", "c", "d", "e"}, want: list("configmaps", "2")},
	} {
		t.Run(name, func(t *testing.T) {
			quota := team("configmaps", "5")
			b := newBench(t, quota, registered())
			b.counts(t, quota, test.counted)
			b.reserves(test.reserved...)
			b.reconcile(t)
			if diff := cmp.Diff(test.want, b.status(t).Reserved); diff != "" {
				t.Errorf("reserved (-want,+got):\n%s", diff)
			}
		})
	}
}

// The count has five config maps of five. The ledger that is known holds one more:
// it is older than the count, because nothing is admitted above the limit.
func TestFiguresOfTwoMomentsAreReadAgain(t *testing.T) {
	quota := team("configmaps", "5")
	b := newBench(t, quota, registered())
	b.counts(t, quota, 5)
	b.reserves("z")
	if wait := b.reconcile(t); wait < 20*time.Millisecond || wait > 50*time.Millisecond || b.writes != 0 {
		t.Fatalf("got a wait of %s and %d writes, want some 30ms and none", wait, b.writes)
	}
	b.reserves() // the newer ledger arrives: the request failed
	if wait := b.reconcile(t); wait != 0 || b.writes != 1 {
		t.Fatalf("then: got a wait of %s and %d writes, want none and 1", wait, b.writes)
	}
	if status := b.status(t); status.Summary != "configmaps: 5/5" || status.Reserved != nil {
		t.Errorf("got %s, reserved %v", status.Summary, status.Reserved)
	}
}

// The limit was lowered while more was reserved: that stays so until it is stored.
func TestATotalThatStaysAboveTheLimitIsShownAfterAWhile(t *testing.T) {
	quota := team("configmaps", "5")
	b := newBench(t, quota, registered())
	b.counts(t, quota, 5)
	b.reserves("z")
	looks := 0
	for wait := b.reconcile(t); wait > 0; wait = b.reconcile(t) {
		b.reconcile(t) // an event comes meanwhile
		b.clock.Step(wait)
		looks++
		if looks > 10 || b.writes > 0 {
			t.Fatalf("after %d looks there are %d writes", looks, b.writes)
		}
	}
	if looks != 5 || b.writes != 1 {
		t.Errorf("looked again %d times and wrote %d times, want 5 and 1", looks, b.writes)
	}
	if diff := cmp.Diff(list("configmaps", "1"), b.status(t).Reserved); diff != "" {
		t.Errorf("reserved (-want,+got):\n%s", diff)
	}
}

func TestUseAboveTheLimitIsShownAtOnce(t *testing.T) {
	quota := team("configmaps", "5")
	b := newBench(t, quota, registered())
	b.counts(t, quota, 6)
	b.reserves("z")
	b.reconcile(t)
	if b.writes != 1 {
		t.Errorf("got %d writes, want 1", b.writes)
	}
}

func TestACountOfTheQuotaBeforeIsNotShown(t *testing.T) {
	quota := team("configmaps", "5")
	b := newBench(t, quota, registered())
	before := quota.DeepCopy()
	before.UID = "before"
	b.counts(t, before, 3)
	b.reconcile(t)
	b.clock.Step(beginningFor)
	b.reconcile(t)
	if got := b.status(t).Summary; got != "configmaps: ?/5" {
		t.Errorf("summary: got %s, want configmaps: ?/5", got)
	}
}
