// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestDecisions(t *testing.T) {
	for name, test := range map[string]struct {
		state  State
		limits Limits
		charge Reservation
		want   Decision
	}{
		"what fits is granted": {
			state: counted("pods", "2"), limits: limits("pods", "3"),
			charge: creation("a", "a", "pods", "1"), want: Granted{},
		},
		"up to the last bit of the limit": {
			state: counted("cpu", "1500m"), limits: limits("cpu", "2"),
			charge: creation("a", "a", "cpu", "500m"), want: Granted{},
		},
		"beyond it nothing is": {
			state: counted("cpu", "1500m"), limits: limits("cpu", "2"),
			charge: creation("a", "a", "cpu", "501m"),
			want: Denied{
				Quota: "team", Requested: list("cpu", "501m"), Used: list("cpu", "1500m"), Limited: list("cpu", "2"),
			},
		},
		"what is reserved counts as used": {
			state: counted("pods", "1").with(creation("b", "b", "pods", "2")), limits: limits("pods", "3"),
			charge: creation("a", "a", "pods", "1"),
			want: Denied{
				Quota: "team", Requested: list("pods", "1"), Used: list("pods", "3"), Limited: list("pods", "3"),
			},
		},
		"a denial lists only what is exceeded": {
			state: counted("pods", "3", "cpu", "1", "memory", "5"), limits: limits("pods", "3", "cpu", "2", "memory", "5"),
			charge: creation("a", "a", "pods", "1", "cpu", "1", "memory", "1"),
			want: Denied{
				Quota: "team", Requested: list("pods", "1", "memory", "1"),
				Used: list("pods", "3", "memory", "5"), Limited: list("pods", "3", "memory", "5"),
			},
		},
		"what isn't limited isn't judged": {
			state: counted("pods", "0"), limits: limits("pods", "1"),
			charge: creation("a", "a", "pods", "1", "cpu", "1000"), want: Granted{},
		},
		"a limit of nothing admits nothing": {
			state: counted("pods", "0"), limits: limits("pods", "0"),
			charge: creation("a", "a", "pods", "1"),
			want: Denied{
				Quota: "team", Requested: list("pods", "1"), Used: list("pods", "0"), Limited: list("pods", "0"),
			},
		},
		"over the limit, a charge of something else is granted": {
			state: counted("pods", "9", "cpu", "0"), limits: limits("pods", "3", "cpu", "1"),
			charge: creation("a", "a", "cpu", "1"), want: Granted{},
		},
		"the same charge again is granted though the quota is full": {
			state: counted("pods", "2").with(creation("a", "a", "pods", "1")), limits: limits("pods", "3"),
			charge: creation("a", "a", "pods", "1"), want: Granted{},
		},
		"so is another attempt to create the same name": {
			state: counted("pods", "2").with(creation("a", "a", "pods", "1")), limits: limits("pods", "3"),
			charge: creation("b", "a", "pods", "1"), want: Granted{},
		},
		"unless it asks for more than there is besides": {
			state: counted("cpu", "2").with(creation("a", "a", "cpu", "1")), limits: limits("cpu", "3"),
			charge: creation("b", "a", "cpu", "2"),
			want: Denied{
				Quota: "team", Requested: list("cpu", "2"), Used: list("cpu", "3"), Limited: list("cpu", "3"),
			},
		},
		"another update of the same version can't win too": {
			state: counted("cpu", "2").with(update("a", "a", "7", "1", "cpu", "1")), limits: limits("cpu", "3"),
			charge: update("a", "a", "7", "2", "cpu", "1"), want: Granted{},
		},
		"an update of a later version can": {
			state: counted("cpu", "2").with(update("a", "a", "7", "1", "cpu", "1")), limits: limits("cpu", "3"),
			charge: update("a", "a", "8", "2", "cpu", "1"),
			want: Denied{
				Quota: "team", Requested: list("cpu", "1"), Used: list("cpu", "3"), Limited: list("cpu", "3"),
			},
		},
		"a ledger without a count can't tell": {
			state: State{}, limits: limits("pods", "3"), charge: creation("a", "a", "pods", "1"),
			want: Undecided{Quota: "team", Reason: NotCounted, Resources: []corev1.ResourceName{"pods"}},
		},
		"nor one of an earlier quota of the name": {
			state:  State{Basis: Basis{Quota: "before", Generation: 9, Digest: "digest"}, Used: list("pods", "0")},
			limits: limits("pods", "3"), charge: creation("a", "a", "pods", "1"),
			want: Undecided{Quota: "team", Reason: NotCounted, Resources: []corev1.ResourceName{"pods"}},
		},
		"nor a count of a spec that counts otherwise": {
			state:  State{Basis: Basis{Quota: "quota", Generation: 2, Digest: "before"}, Used: list("pods", "0", "cpu", "0")},
			limits: limits("pods", "3", "cpu", "1"), charge: creation("a", "a", "pods", "1", "cpu", "1"),
			want: Undecided{Quota: "team", Reason: NotCounted, Resources: []corev1.ResourceName{"cpu", "pods"}},
		},
		"a count of an older spec that counts the same can": {
			state:  State{Basis: Basis{Quota: "quota", Generation: 2, Digest: "digest"}, Used: list("pods", "0")},
			limits: limits("pods", "3"), charge: creation("a", "a", "pods", "1"), want: Granted{},
		},
		"what hasn't been counted of several is missing": {
			state: counted("pods", "0"), limits: limits("pods", "3", "cpu", "1"),
			charge: creation("a", "a", "pods", "1", "cpu", "1"),
			want:   Undecided{Quota: "team", Reason: NotCounted, Resources: []corev1.ResourceName{"cpu", "pods"}},
		},
		"it isn't missed by a charge of something else": {
			state: counted("pods", "0"), limits: limits("pods", "3", "cpu", "1"),
			charge: creation("a", "a", "pods", "1"), want: Granted{},
		},
		"nor one that may lack what is in flight": {
			state:  State{Basis: Basis{Quota: "quota", Generation: 3, Digest: "digest"}, Used: list("pods", "0"), Sealed: time.Unix(1, 0)},
			limits: limits("pods", "3"), charge: creation("a", "a", "pods", "1"),
			want: Undecided{Quota: "team", Reason: Sealed, Resources: []corev1.ResourceName{"pods"}},
		},
		"limits older than the ledger don't count": {
			state:  State{Basis: Basis{Quota: "quota", Generation: 4, Digest: "digest"}, Used: list("pods", "0")},
			limits: limits("pods", "3"), charge: creation("a", "a", "pods", "1"),
			want: Undecided{Quota: "team", Reason: StaleLimits, Resources: []corev1.ResourceName{"pods"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Edit(test.state).Judge(asking(test.limits, test.charge))); diff != "" {
				t.Errorf("judged (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want, Edit(test.state).Reserve(asking(test.limits, test.charge))); diff != "" {
				t.Errorf("reserved (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestTheLedgerAfterADecision(t *testing.T) {
	full := limits("pods", "1")
	for name, test := range map[string]struct {
		do          func(*Draft)
		want        map[Key]Reservation
		wantReserve corev1.ResourceList
		changed     bool
	}{
		"a granted charge is held, for what is limited": {
			do: func(d *Draft) { d.Reserve(asking(full, creation("a", "a", "pods", "1", "cpu", "1"))) },
			want: map[Key]Reservation{
				{UID: "a"}: creation("a", "a", "pods", "1"),
			},
			wantReserve: list("pods", "1"), changed: true,
		},
		"a denied one is not": {
			do:   func(d *Draft) { d.Reserve(asking(full, creation("a", "a", "pods", "2"))) },
			want: map[Key]Reservation{}, wantReserve: list(),
		},
		"nor an undecided one": {
			do: func(d *Draft) {
				d.Reserve(asking(Limits{Name: "team", Hard: full.Hard}, creation("a", "a", "pods", "1")))
			},
			want: map[Key]Reservation{}, wantReserve: list(),
		},
		"to judge leaves nothing": {
			do:   func(d *Draft) { d.Judge(asking(full, creation("a", "a", "pods", "1"))) },
			want: map[Key]Reservation{}, wantReserve: list(),
		},
		"two attempts at one name are held, and charged once": {
			do: func(d *Draft) {
				d.Reserve(asking(full, creation("a", "a", "pods", "1")))
				d.Reserve(asking(full, creation("b", "a", "pods", "1")))
			},
			want: map[Key]Reservation{
				{UID: "a"}: creation("a", "a", "pods", "1"), {UID: "b"}: creation("b", "a", "pods", "1"),
			},
			wantReserve: list("pods", "1"), changed: true,
		},
		"what is released is free": {
			do: func(d *Draft) {
				d.Reserve(asking(full, creation("a", "a", "pods", "1")))
				d.Release(Key{UID: "a"})
			},
			want: map[Key]Reservation{}, wantReserve: list(), changed: true,
		},
		"to release what isn't there changes nothing": {
			do:   func(d *Draft) { d.Release(Key{UID: "a"}) },
			want: map[Key]Reservation{}, wantReserve: list(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			draft := Edit(counted("pods", "0"))
			test.do(draft)
			if diff := cmp.Diff(test.want, draft.State().Reservations); diff != "" {
				t.Errorf("reservations (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(test.wantReserve, draft.State().Reserved()); diff != "" {
				t.Errorf("reserved (-want,+got):\n%s", diff)
			}
			if draft.Changed() != test.changed {
				t.Errorf("changed: got %v, want %v", draft.Changed(), test.changed)
			}
		})
	}
}

// The slot of a retried name is charged as the largest attempt, in any order in
// which the attempts come and go.
func TestAttemptsAtOneNameAreChargedAsTheLargest(t *testing.T) {
	draft := Edit(counted("cpu", "0"))
	for _, step := range []struct {
		do   func()
		want corev1.ResourceList
	}{
		{do: func() { draft.Reserve(asking(limits("cpu", "9"), creation("a", "a", "cpu", "2"))) }, want: list("cpu", "2")},
		{do: func() { draft.Reserve(asking(limits("cpu", "9"), creation("b", "a", "cpu", "5"))) }, want: list("cpu", "5")},
		{do: func() { draft.Reserve(asking(limits("cpu", "9"), creation("c", "a", "cpu", "1"))) }, want: list("cpu", "5")},
		{do: func() { draft.Release(Key{UID: "b"}) }, want: list("cpu", "2")},
		{do: func() { draft.Release(Key{UID: "a"}) }, want: list("cpu", "1")},
		{do: func() { draft.Release(Key{UID: "c"}) }, want: list("cpu", "0")},
	} {
		step.do()
		if diff := cmp.Diff(step.want, draft.Charged()); diff != "" {
			t.Errorf("charged (-want,+got):\n%s", diff)
		}
	}
}

// An attempt that claims the UID of another's object can neither give its charge back nor change it.
func TestNothingButAnAttemptItselfChangesItsReservation(t *testing.T) {
	honest := creation("a", "a", "pods", "2")
	honest.Attempt = "honest"
	for name, forged := range map[string]string{"denied, as it asks for too much": "9", "granted, as it asks for less": "1"} {
		t.Run(name, func(t *testing.T) {
			claims := creation("a", "a", "pods", forged)
			claims.Attempt = "forged"
			draft := Edit(counted("pods", "0").with(honest))
			draft.Reserve(asking(limits("pods", "3"), claims))
			draft.Release(claims.Key())
			state := draft.State()
			if diff := cmp.Diff(honest, state.Reservations[honest.Key()]); diff != "" {
				t.Errorf("reservation (-want,+got):\n%s", diff)
			}
			if reserved := state.Reserved(); reserved.Pods().Value() != 2 {
				t.Errorf("reserved: got %v, want 2", reserved)
			}
		})
	}
}

// Names that aren't valid UTF-8 become equal in JSON, and are stored under as many names.
func TestOnlyNamesThatCantBeMistakenShareASlot(t *testing.T) {
	for name, test := range map[string]struct {
		called string
		want   int64
	}{
		"a DNS subdomain":                      {called: "web-1.example", want: 1},
		"what JSON has replaced":               {called: "web-\uFFFD", want: 3},
		"what the API server stores for roles": {called: "system:web", want: 3},
		"a capital":                            {called: "Web", want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			draft := Edit(counted("pods", "0"))
			for _, uid := range []types.UID{"a", "b", "c"} {
				draft.Reserve(asking(limits("pods", "9"), creation(uid, test.called, "pods", "1")))
			}
			if reserved := draft.State().Reserved(); reserved.Pods().Value() != test.want {
				t.Errorf("reserved: got %v, want %d", reserved, test.want)
			}
		})
	}
}

func TestALedgerHoldsOnlySoMany(t *testing.T) {
	state := counted("pods", "0")
	held := make([]Reservation, 0, MaxReservations)
	for i := range MaxReservations {
		name := fmt.Sprint("p", i)
		held = append(held, creation(types.UID(name), name, "pods", "1"))
	}
	draft := Edit(state.with(held...))
	want := Undecided{Quota: "team", Reason: Full, Resources: []corev1.ResourceName{"pods"}}
	if diff := cmp.Diff(Decision(want), draft.Reserve(asking(limits("pods", "9999"), creation("new", "new", "pods", "1")))); diff != "" {
		t.Errorf("one more (-want,+got):\n%s", diff)
	}
	if decision := draft.Reserve(asking(limits("pods", "9999"), held[0])); !IsGranted(decision) {
		t.Errorf("one that is held, again: got %#v, want it granted", decision)
	}
}
