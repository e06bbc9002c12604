// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// advising refuses nothing.
func (l Limits) advising() Limits {
	l.Advisory = true
	return l
}

// remarked is granted, and remarked on.
func remarked(remarks ...Remark) Decision { return Granted{Remarks: remarks} }

func remark(requested, used, limited corev1.ResourceList) Remark {
	return Remark{Quota: "team", Refusal: Denied{Quota: "team", Requested: requested, Used: used, Limited: limited}}
}

func undecidedRemark(reason Reason, resources ...corev1.ResourceName) Remark {
	return Remark{Quota: "team", Refusal: Undecided{
		Quota: "team", Reason: reason, Resources: resources, Unenforced: true,
	}}
}

func TestWhatIsNotEnforcedIsReservedAndRemarkedOn(t *testing.T) {
	pod := creation("a", "a", "pods", "1", "cpu", "1")
	both := limits("pods", "3", "cpu", "3")
	for name, test := range map[string]struct {
		state  State
		charge Charge
		want   Decision
		// reserved is the ledger's reserved amount then; nil for none.
		reserved corev1.ResourceList
	}{
		"what fits is granted without a word": {
			state: counted("pods", "2", "cpu", "2"), charge: asking(both.advising(), pod),
			want: Granted{}, reserved: list("pods", "1", "cpu", "1"),
		},
		"what doesn't fit is reserved in full": {
			state: counted("pods", "3", "cpu", "2"), charge: asking(both.advising(), pod),
			want:     remarked(remark(list("pods", "1"), list("pods", "3"), list("pods", "3"))),
			reserved: list("pods", "1", "cpu", "1"),
		},
		"what was used long before is remarked on, too": {
			state: counted("pods", "90", "cpu", "0"), charge: asking(both.advising(), pod),
			want:     remarked(remark(list("pods", "1"), list("pods", "90"), list("pods", "3"))),
			reserved: list("pods", "1", "cpu", "1"),
		},
		"the same charge again is remarked on as it was, and adds nothing": {
			state: counted("pods", "3", "cpu", "0").with(pod), charge: asking(both.advising(), pod),
			want:     remarked(remark(list("pods", "1"), list("pods", "4"), list("pods", "3"))),
			reserved: list("pods", "1", "cpu", "1"),
		},
		"escrow of others is not held against it": {
			state: counted("pods", "0", "cpu", "0").holding(escrowOf("you", "pods", "3")), charge: asking(both.advising(), pod),
			want: Granted{}, reserved: list("pods", "4", "cpu", "1"),
		},
		"while a resource isn't counted, what is counted is reserved": {
			state: counted("pods", "0"), charge: asking(both.advising(), pod),
			want: remarked(undecidedRemark(NotCounted, "cpu", "pods")), reserved: list("pods", "1"),
		},
		"all is reserved in a ledger of another count": {
			state:  State{Basis: Basis{Quota: "quota", Generation: 2, Digest: "before"}, Used: list("pods", "0", "cpu", "0")},
			charge: asking(both.advising(), pod),
			want:   remarked(undecidedRemark(NotCounted, "cpu", "pods")), reserved: list("pods", "1", "cpu", "1"),
		},
		"nothing is reserved in the ledger of another quota": {
			state:  State{Basis: Basis{Quota: "before", Generation: 9, Digest: "digest"}, Used: list("pods", "0", "cpu", "0")},
			charge: asking(both.advising(), pod),
			want:   Undecided{Unenforced: true, Quota: "team", Reason: NotCounted, Resources: []corev1.ResourceName{"cpu", "pods"}},
		},
		"nothing is reserved by an outdated spec": {
			state:  State{Basis: Basis{Quota: "quota", Generation: 4, Digest: "digest"}, Used: list("pods", "0", "cpu", "0")},
			charge: asking(both.advising(), pod),
			want:   Undecided{Unenforced: true, Quota: "team", Reason: StaleLimits, Resources: []corev1.ResourceName{"cpu", "pods"}},
		},
		"nothing is reserved for a caller that has seen less of namespaces": {
			state:  counted("pods", "0", "cpu", "0").upTo(Namespaces, 7),
			charge: Charge{Limits: both.advising(), Reservation: pod, Knowledge: Knowledge{Seen: 6}},
			want:   Undecided{Unenforced: true, Quota: "team", Reason: StaleNamespaces, Resources: []corev1.ResourceName{"cpu", "pods"}, Members: 7},
		},
		"all is reserved in a namespace that isn't counted yet": {
			state:  counted("pods", "0", "cpu", "0").upTo(Namespaces, 7),
			charge: Charge{Limits: both.advising(), Reservation: pod, Knowledge: Knowledge{Joined: 8, Seen: 9}},
			want:   remarked(undecidedRemark(NotJoined, "cpu", "pods")), reserved: list("pods", "1", "cpu", "1"),
		},
		"a sealed ledger reserves": {
			state:  State{Basis: basis(), Sealed: expiry},
			charge: asking(both.advising(), pod),
			want:   remarked(undecidedRemark(Sealed, "cpu", "pods")), reserved: list("pods", "1", "cpu", "1"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			draft := Edit(test.state)
			if _, undecided := draft.Judge(test.charge).(Undecided); !undecided && isUnjudged(test.want) {
				t.Error("want it undecided as long as it is waited for")
			}
			test.charge.Unjudged = true // it isn't waited for any longer
			if diff := cmp.Diff(test.want, draft.Judge(test.charge)); diff != "" {
				t.Errorf("judged (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want, draft.Reserve(test.charge)); diff != "" {
				t.Errorf("reserved (-want,+got):\n%s", diff)
			}
			if got := draft.State().Reserved(); !quota.Equals(got, test.reserved) {
				t.Errorf("got %v reserved, want %v", got, test.reserved)
			}
		})
	}
}

func TestAdvisoryChargesAreNotWithheld(t *testing.T) {
	doubtful := creation("d", "d", "pods", "40", "cpu", "40")
	doubtful.Doubtful = true
	state := counted("pods", "0", "cpu", "0").with(doubtful)
	charge := asking(limits("pods", "100", "cpu", "100"), creation("a", "a", "pods", "20", "cpu", "20"))
	charge.MaxDoubtful = 10
	if withheld, ok := Edit(state).Judge(charge).(Withheld); !ok || len(withheld.Requested) != 2 {
		t.Fatalf("got %#v, want both withheld", withheld)
	}
	charge.Limits = charge.Limits.advising()
	if decision := Edit(state).Judge(charge); !IsGranted(decision) {
		t.Errorf("got %#v, want it granted", decision)
	}
	if state.IsTight(charge, nil) {
		t.Error("want nobody looked for in haste for what refuses nothing")
	}
}

// isUnjudged reports whether a decision grants a charge that couldn't be judged.
func isUnjudged(decision Decision) bool {
	granted, ok := decision.(Granted)
	if !ok || len(granted.Remarks) == 0 {
		return false
	}
	_, undecided := granted.Remarks[0].Refusal.(Undecided)
	return undecided
}

// A ledger that holds as many as it can grants charges that aren't enforced, and
// doesn't hold them.
func TestAFullLedgerHoldsUpOnlyWhatIsEnforced(t *testing.T) {
	held := make([]Reservation, 0, MaxReservations)
	for i := range MaxReservations - 1 {
		held = append(held, benchPod(i))
	}
	state := counted("pods", "0").with(held...).holding(escrowOf("me", "pods", "9"))
	pod := creation("a", "a", "pods", "1")
	for name, test := range map[string]struct {
		limits Limits
		want   Decision
	}{
		"enforced": {limits: limits("pods", "1M"), want: Undecided{Quota: "team", Reason: Full, Resources: []corev1.ResourceName{"pods"}}},
		"advisory": {limits: limits("pods", "1M").advising(), want: remarked(undecidedRemark(Full, "pods"))},
	} {
		t.Run(name, func(t *testing.T) {
			draft := Edit(state)
			charge := asking(test.limits, pod)
			charge.Unjudged = true
			if diff := cmp.Diff(test.want, draft.Reserve(charge)); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
			if _, granted := draft.Spend(escrowOf("me").EscrowKey, asking(test.limits, pod), false); granted {
				t.Error("granted from escrow, which would be recorded in a full ledger")
			}
			if draft.Changed() || len(draft.State().Reservations) != MaxReservations-1 {
				t.Error("want it as it was")
			}
		})
	}
}

// While nothing is enforced, charges fill half of a ledger at most, so that an edit of the mode to Deny finds room.
func TestWhatIsNotEnforcedLeavesRoomInTheLedger(t *testing.T) {
	held := make([]Reservation, 0, MaxReservations/2)
	for i := range MaxReservations / 2 {
		held = append(held, benchPod(i))
	}
	draft := Edit(counted("pods", "0").with(held...))
	draft.Reserve(asking(limits("pods", "1M").advising(), creation("a", "a", "pods", "1")))
	if draft.Changed() {
		t.Error("want what isn't enforced granted without a reservation")
	}
	if decision := draft.Reserve(asking(limits("pods", "1M"), creation("b", "b", "pods", "1"))); !IsGranted(decision) || !draft.Changed() {
		t.Errorf("got %+v, want what is enforced reserved", decision)
	}
}

func TestAFenceEnforces(t *testing.T) {
	state := counted("pods", "3", "cpu", "3")
	pod := creation("a", "a", "pods", "1", "cpu", "1")
	denied := func(limit string) Decision {
		return Denied{Quota: "team", Requested: list("pods", "1"), Used: list("pods", "3"), Limited: list("pods", limit)}
	}
	audited := remarked(remark(list("pods", "1"), list("pods", "3"), list("pods", "3")))
	for name, test := range map[string]struct {
		fence    Fence
		limits   Limits
		want     Decision
		reserved corev1.ResourceList
	}{
		"what only advised is denied": {
			fence: fence(4, "pods", "3"), limits: limits("pods", "3", "cpu", "9").advising(), want: denied("3"),
		},
		"what only advised is granted by a higher limit of the fence": {
			fence: fence(4, "pods", "4"), limits: limits("pods", "1", "cpu", "9").advising(),
			want: Granted{}, reserved: list("pods", "1", "cpu", "1"),
		},
		"what only advised is denied by a lower limit of the fence": {
			fence: fence(4, "pods", "2"), limits: limits("pods", "9", "cpu", "9").advising(), want: denied("2"),
		},
		"what was enforced is denied by the lower limit": {
			fence: fence(4, "pods", "9"), limits: limits("pods", "3", "cpu", "9"), want: denied("3"),
		},
		"what wasn't limited at all is denied": {
			fence: fence(4, "pods", "3"), limits: limits("cpu", "9").advising(), want: denied("3"),
		},
		"what the fence doesn't limit is charged and not enforced": {
			fence: fence(4, "cpu", "9"), limits: limits("pods", "3", "cpu", "1").advising(),
			want: Granted{}, reserved: list("pods", "1", "cpu", "1"),
		},
		"a caller that knows the fenced spec goes by that": {
			fence: fence(3, "pods", "0"), limits: limits("pods", "3").advising(), want: audited, reserved: list("pods", "1"),
		},
		"a fence that enforces nothing changes no answer": {
			fence: fence(4), limits: limits("pods", "3").advising(), want: audited, reserved: list("pods", "1"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			given := test.limits
			given.Hard = given.Hard.DeepCopy()
			draft := Edit(raised(state, test.fence))
			if diff := cmp.Diff(test.want, draft.Reserve(asking(given, pod))); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
			if got := draft.State().Reserved(); !quota.Equals(got, test.reserved) {
				t.Errorf("got %v reserved, want %v", got, test.reserved)
			}
			if diff := cmp.Diff(test.limits, given); diff != "" {
				t.Errorf("to judge changed the limits of the caller (-want,+got):\n%s", diff)
			}
		})
	}
}

// Of resources that aren't enforced, all of the wanted amount is taken in escrow.
func TestAffordableOfWhatIsNotEnforced(t *testing.T) {
	draft := Edit(counted("pods", "500").holding(escrowOf("you", "pods", "90")))
	for name, test := range map[string]struct{ wanted, want corev1.ResourceList }{
		"more than is free":             {wanted: list("pods", "300"), want: list("pods", "300")},
		"nothing of what isn't counted": {wanted: list("secrets", "1"), want: list()},
	} {
		t.Run(name, func(t *testing.T) {
			if got := draft.affordable(test.wanted, limits("pods", "100", "secrets", "1").advising(), 4); !quota.Equals(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// Grants from escrow carry their remarks, and these don't hold the escrow against them.
func TestSpendRemarks(t *testing.T) {
	held := escrowOf("me", "pods", "2")
	draft := Edit(counted("pods", "3").holding(held))
	for range 2 { // first as a probe
		got, ok := draft.Spend(held.EscrowKey, asking(limits("pods", "3").advising(), creation("a", "a", "pods", "1")), true)
		want := []Remark{remark(list("pods", "1"), list("pods", "3"), list("pods", "3"))}
		if diff := cmp.Diff(want, got.Remarks); !ok || diff != "" {
			t.Errorf("granted: %v; (-want,+got):\n%s", ok, diff)
		}
	}
}

func TestHeld(t *testing.T) {
	taken := creation("a", "a", "pods", "1", "cpu", "1", "memory", "9")
	state := counted("pods", "3", "cpu", "0").with(taken).holding(escrowOf("me", "pods", "2", "cpu", "1"), escrowOf("you", "pods", "5"))
	want := list("pods", "4", "cpu", "1")
	if got := state.held(); !quota.Equals(got, want) || len(got) != len(want) {
		t.Errorf("got %v, want %v: without escrows, and without what isn't counted", got, want)
	}
	if got := (State{}).held(); len(got) > 0 {
		t.Errorf("got %v of a ledger without a count", got)
	}
}
