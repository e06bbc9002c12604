// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// advising refuses nothing for the sake of some resources.
func (l Limits) advising(names ...corev1.ResourceName) Limits {
	l.Advisory = map[corev1.ResourceName]bool{}
	for _, name := range names {
		l.Advisory[name] = true
	}
	return l
}

func (l Limits) trying(hard ...string) Limits {
	l.Trial = list(hard...)
	return l
}

func (l Limits) warningAt(percent int64) Limits {
	l.WarnAt = percent
	return l
}

// remarked is granted, and remarked on.
func remarked(remarks ...Remark) Decision { return Granted{Remarks: remarks} }

func remark(kind RemarkKind, requested, used, limited corev1.ResourceList) Remark {
	return Remark{Quota: "team", Kind: kind, Refusal: Denied{Quota: "team", Requested: requested, Used: used, Limited: limited}}
}

func undecidedRemark(reason Reason, resources ...corev1.ResourceName) Remark {
	return Remark{Quota: "team", Kind: Unenforced, Refusal: Undecided{Quota: "team", Reason: reason, Resources: resources}}
}

func TestWhatIsNotEnforcedIsReservedAndRemarkedOn(t *testing.T) {
	pod := creation("a", "a", "pods", "1", "cpu", "1")
	both := limits("pods", "3", "cpu", "3")
	for name, test := range map[string]struct {
		state  State
		charge Charge
		want   Decision
		// reserved is what the ledger holds then; nothing for nothing.
		reserved corev1.ResourceList
	}{
		"what fits is granted without a word": {
			state: counted("pods", "2", "cpu", "2"), charge: asking(both.advising("pods", "cpu"), pod),
			want: Granted{}, reserved: list("pods", "1", "cpu", "1"),
		},
		"what doesn't fit is reserved in full": {
			state: counted("pods", "3", "cpu", "2"), charge: asking(both.advising("pods", "cpu"), pod),
			want:     remarked(remark(Unenforced, list("pods", "1"), list("pods", "3"), list("pods", "3"))),
			reserved: list("pods", "1", "cpu", "1"),
		},
		"what is enforced is denied, and what only advises isn't named": {
			state: counted("pods", "3", "cpu", "3"), charge: asking(both.advising("pods"), pod),
			want: Denied{Quota: "team", Requested: list("cpu", "1"), Used: list("cpu", "3"), Limited: list("cpu", "3")},
		},
		"what is enforced fits, and the other is remarked on": {
			state: counted("pods", "3", "cpu", "2"), charge: asking(both.advising("pods"), pod),
			want:     remarked(remark(Unenforced, list("pods", "1"), list("pods", "3"), list("pods", "3"))),
			reserved: list("pods", "1", "cpu", "1"),
		},
		"what was used long before is remarked on, too": {
			state: counted("pods", "90", "cpu", "0"), charge: asking(both.advising("pods"), pod),
			want:     remarked(remark(Unenforced, list("pods", "1"), list("pods", "90"), list("pods", "3"))),
			reserved: list("pods", "1", "cpu", "1"),
		},
		"the same charge again is remarked on as it was, and adds nothing": {
			state: counted("pods", "3", "cpu", "0").with(pod), charge: asking(both.advising("pods"), pod),
			want:     remarked(remark(Unenforced, list("pods", "1"), list("pods", "4"), list("pods", "3"))),
			reserved: list("pods", "1", "cpu", "1"),
		},
		"escrow of others is not held against it": {
			state: counted("pods", "0", "cpu", "0").with(escrowOf("you", "pods", "3")), charge: asking(both.advising("pods"), pod),
			want: Granted{}, reserved: list("pods", "4", "cpu", "1"),
		},
		"and is held against what is enforced": {
			state: counted("pods", "0", "cpu", "0").with(escrowOf("you", "pods", "3")), charge: asking(both.advising("cpu"), pod),
			want:     Denied{Quota: "team", Requested: list("pods", "1"), Used: list("pods", "3"), Limited: list("pods", "3")},
			reserved: list("pods", "3"),
		},
		"a trial refuses nothing": {
			state: counted("pods", "1", "cpu", "0"), charge: asking(both.trying("pods", "1"), pod),
			want:     remarked(remark(Tried, list("pods", "1"), list("pods", "1"), list("pods", "1"))),
			reserved: list("pods", "1", "cpu", "1"),
		},
		"a trial that fits says nothing": {
			state: counted("pods", "1", "cpu", "0"), charge: asking(both.trying("pods", "2", "cpu", "1"), pod),
			want: Granted{}, reserved: list("pods", "1", "cpu", "1"),
		},
		"a limit and a trial are judged each for itself": {
			state: counted("pods", "3", "cpu", "3"), charge: asking(both.advising("pods", "cpu").trying("cpu", "2", "pods", "9"), pod),
			want: remarked(
				remark(Unenforced, list("pods", "1", "cpu", "1"), list("pods", "3", "cpu", "3"), list("pods", "3", "cpu", "3")),
				remark(Tried, list("cpu", "1"), list("cpu", "3"), list("cpu", "2"))),
			reserved: list("pods", "1", "cpu", "1"),
		},
		"what is denied isn't tried": {
			state: counted("pods", "3", "cpu", "0"), charge: asking(both.trying("pods", "1"), pod),
			want: Denied{Quota: "team", Requested: list("pods", "1"), Used: list("pods", "3"), Limited: list("pods", "3")},
		},
		"what only the trial limits is charged": {
			state: counted("pods", "0", "cpu", "1", "memory", "1"), charge: asking(limits("pods", "3").trying("cpu", "1"), pod),
			want:     remarked(remark(Tried, list("cpu", "1"), list("cpu", "1"), list("cpu", "1"))),
			reserved: list("pods", "1", "cpu", "1"),
		},
		"and not counted, it holds up nobody": {
			state: counted("pods", "0"), charge: asking(limits("pods", "3").trying("cpu", "1"), pod),
			want: Granted{}, reserved: list("pods", "1"),
		},
		"what only advises holds up nobody before it is counted": {
			state: counted("pods", "0"), charge: asking(both.advising("cpu"), pod),
			want: Granted{}, reserved: list("pods", "1"),
		},
		"but what is enforced does": {
			state: counted("pods", "0"), charge: asking(both.advising("pods"), pod),
			want: Undecided{Quota: "team", Reason: NotCounted, Resources: []corev1.ResourceName{"cpu", "pods"}},
		},
		"if nothing is enforced, what is counted is reserved": {
			state: counted("pods", "0"), charge: asking(both.advising("pods", "cpu"), pod),
			want: remarked(undecidedRemark(NotCounted, "cpu", "pods")), reserved: list("pods", "1"),
		},
		"also for a spec that counts otherwise": {
			state:  State{Basis: Basis{Quota: "quota", Generation: 2, Digest: "before"}, Used: list("pods", "0", "cpu", "0")},
			charge: asking(both.advising("pods", "cpu"), pod),
			want:   remarked(undecidedRemark(NotCounted, "cpu", "pods")), reserved: list("pods", "1", "cpu", "1"),
		},
		"but not in the ledger of another quota": {
			state:  State{Basis: Basis{Quota: "before", Generation: 9, Digest: "digest"}, Used: list("pods", "0", "cpu", "0")},
			charge: asking(both.advising("pods", "cpu"), pod),
			want:   Undecided{Unenforced: true, Quota: "team", Reason: NotCounted, Resources: []corev1.ResourceName{"cpu", "pods"}},
		},
		"nor by an outdated spec": {
			state:  State{Basis: Basis{Quota: "quota", Generation: 4, Digest: "digest"}, Used: list("pods", "0", "cpu", "0")},
			charge: asking(both.advising("pods", "cpu"), pod),
			want:   Undecided{Unenforced: true, Quota: "team", Reason: StaleLimits, Resources: []corev1.ResourceName{"cpu", "pods"}},
		},
		"nor by a caller who has seen less of namespaces": {
			state:  counted("pods", "0", "cpu", "0").upTo(Namespaces, 7),
			charge: Charge{Limits: both.advising("pods", "cpu"), Reservation: pod, Knowledge: Knowledge{Seen: 6}},
			want:   Undecided{Unenforced: true, Quota: "team", Reason: StaleNamespaces, Resources: []corev1.ResourceName{"cpu", "pods"}, Members: 7},
		},
		"in a namespace that isn't counted yet": {
			state:  counted("pods", "0", "cpu", "0").upTo(Namespaces, 7),
			charge: Charge{Limits: both.advising("pods", "cpu"), Reservation: pod, Knowledge: Knowledge{Namespace: 8, Seen: 9}},
			want:   remarked(undecidedRemark(NotJoined, "cpu", "pods")), reserved: list("pods", "1", "cpu", "1"),
		},
		"and if one resource is enforced, it waits": {
			state:  counted("pods", "0", "cpu", "0").upTo(Namespaces, 7),
			charge: Charge{Limits: both.advising("pods"), Reservation: pod, Knowledge: Knowledge{Namespace: 8, Seen: 9}},
			want:   Undecided{Quota: "team", Reason: NotJoined, Resources: []corev1.ResourceName{"cpu", "pods"}},
		},
		"a sealed ledger reserves": {
			state:  State{Basis: basis(), Sealed: expiry},
			charge: asking(both.advising("pods", "cpu"), pod),
			want:   remarked(undecidedRemark(Sealed, "cpu", "pods")), reserved: list("pods", "1", "cpu", "1"),
		},
		"and refuses what is enforced": {
			state:  State{Basis: basis(), Sealed: expiry},
			charge: asking(both.advising("cpu"), pod),
			want:   Undecided{Quota: "team", Reason: Sealed, Resources: []corev1.ResourceName{"cpu", "pods"}},
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

func TestWarnAt(t *testing.T) {
	const huge = "999999999999999999999999999999" // just below what a limit may be
	for name, test := range map[string]struct {
		used, added, hard string
		at                int64
		advisory          bool
		want              RemarkKind
	}{
		"below":                          {used: "70", added: "9", hard: "100", at: 80},
		"exactly":                        {used: "70", added: "10", hard: "100", at: 80, want: Near},
		"one percent":                    {used: "0", added: "1", hard: "100", at: 1, want: Near},
		"a hair below a fraction":        {used: "2", added: "0.399", hard: "3", at: 80},
		"a fraction":                     {used: "2", added: "0.4", hard: "3", at: 80, want: Near},
		"all of it":                      {used: "99", added: "1", hard: "100", at: 100, want: Near},
		"all but one":                    {used: "98", added: "1", hard: "100", at: 100},
		"never":                          {used: "99", added: "1", hard: "100"},
		"a limit of nothing, beyond it":  {used: "0", added: "1", hard: "0", at: 80, advisory: true, want: Unenforced},
		"beyond the limit says only so":  {used: "99", added: "2", hard: "100", at: 80, advisory: true, want: Unenforced},
		"an advisory limit comes near":   {used: "70", added: "10", hard: "100", at: 80, advisory: true, want: Near},
		"exabytes":                       {used: "7Ei", added: "1", hard: "8Ei", at: 88},
		"many exabytes":                  {used: "7Ei", added: "1", hard: "8Ei", at: 87, want: Near},
		"more than any number of 64 bit": {used: "799999999999999999999999999999", added: "1", hard: huge, at: 80, want: Near},
		"and less than so much of it":    {used: "799999999999999999999999999998", added: "1", hard: huge, at: 80},
		"thousandths":                    {used: "1m", added: "1m", hard: "3m", at: 67},
		"two thirds of thousandths":      {used: "1m", added: "1m", hard: "3m", at: 66, want: Near},
	} {
		t.Run(name, func(t *testing.T) {
			judged := limits("pods", test.hard).warningAt(test.at)
			if test.advisory {
				judged = judged.advising("pods")
			}
			got, ok := Edit(counted("pods", test.used)).Judge(asking(judged, creation("a", "a", "pods", test.added))).(Granted)
			if !ok {
				t.Fatal("not granted")
			}
			var kind RemarkKind
			if len(got.Remarks) > 0 {
				kind = got.Remarks[0].Kind
				want := remark(kind, list("pods", test.added), list("pods", test.used), list("pods", test.hard))
				if diff := cmp.Diff([]Remark{want}, got.Remarks); diff != "" {
					t.Errorf("(-want,+got):\n%s", diff)
				}
			}
			if kind != test.want {
				t.Errorf("got %q, want %q", kind, test.want)
			}
		})
	}
}

// Who adds nothing of a resource that is nearly used up isn't warned of it.
func TestNobodyIsWarnedOfWhatTheyDontAdd(t *testing.T) {
	state := counted("pods", "9", "cpu", "1").with(creation("a", "a", "pods", "1"))
	judged := limits("pods", "10", "cpu", "10").warningAt(80)
	if diff := cmp.Diff(Decision(Granted{}), Edit(state).Judge(asking(judged, creation("b", "a", "pods", "1", "cpu", "1")))); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
}

func TestOnlyWhatIsEnforcedIsWithheld(t *testing.T) {
	doubtful := creation("d", "d", "pods", "40", "cpu", "40")
	doubtful.Doubtful = true
	state := counted("pods", "0", "cpu", "0").with(doubtful)
	charge := asking(limits("pods", "100", "cpu", "100"), creation("a", "a", "pods", "20", "cpu", "20"))
	charge.MaxDoubtful = 10
	withheld, ok := Edit(state).Judge(charge).(Withheld)
	if !ok || len(withheld.Requested) != 2 {
		t.Fatalf("got %#v, want both withheld", withheld)
	}
	charge.Limits = charge.Limits.advising("pods")
	if withheld, ok = Edit(state).Judge(charge).(Withheld); !ok || !quota.Equals(withheld.Requested, list("cpu", "20")) {
		t.Errorf("got %#v, want the CPU withheld", withheld)
	}
	charge.Limits = charge.Limits.advising("pods", "cpu")
	if decision := Edit(state).Judge(charge); !IsGranted(decision) {
		t.Errorf("got %#v, want it granted", decision)
	}
	if state.IsTight(charge) {
		t.Error("want nobody looked for in haste for what refuses nothing")
	}
}

// isUnjudged reports whether a decision grants what nobody could judge.
func isUnjudged(decision Decision) bool {
	granted, ok := decision.(Granted)
	if !ok || len(granted.Remarks) == 0 {
		return false
	}
	_, undecided := granted.Remarks[0].Refusal.(Undecided)
	return undecided
}

// A ledger that holds as many as it can grants what isn't enforced, and holds it not.
func TestAFullLedgerHoldsUpOnlyWhatIsEnforced(t *testing.T) {
	held := make([]Reservation, 0, MaxReservations)
	for i := range MaxReservations - 1 {
		held = append(held, benchPod(i))
	}
	state := counted("pods", "0").with(append(held, escrowOf("me", "pods", "9"))...)
	pod := creation("a", "a", "pods", "1")
	for name, test := range map[string]struct {
		limits Limits
		want   Decision
	}{
		"enforced": {limits: limits("pods", "1M"), want: Undecided{Quota: "team", Reason: Full, Resources: []corev1.ResourceName{"pods"}}},
		"advisory": {limits: limits("pods", "1M").advising("pods"), want: remarked(undecidedRemark(Full, "pods"))},
	} {
		t.Run(name, func(t *testing.T) {
			draft := Edit(state)
			charge := asking(test.limits, pod)
			charge.Unjudged = true
			if diff := cmp.Diff(test.want, draft.Reserve(charge)); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
			if _, granted := draft.Spend(escrowOf("me").Key(), asking(test.limits, pod), false); granted {
				t.Error("granted from escrow, which would be recorded in a full ledger")
			}
			if draft.Changed() || len(draft.State().Reservations) != MaxReservations {
				t.Error("want it as it was")
			}
		})
	}
}

// Charges that nobody may be refused for fill half of a ledger at most, so that they hold up nobody.
func TestWhatIsNotEnforcedLeavesRoomInTheLedger(t *testing.T) {
	held := make([]Reservation, 0, MaxReservations/2)
	for i := range MaxReservations / 2 {
		held = append(held, benchPod(i))
	}
	draft := Edit(counted("pods", "0").with(held...))
	draft.Reserve(asking(limits("pods", "1M").advising("pods"), creation("a", "a", "pods", "1")))
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
	audited := remark(Unenforced, list("pods", "1"), list("pods", "3"), list("pods", "3"))
	for name, test := range map[string]struct {
		fence  Fence
		limits Limits
		want   Decision
	}{
		"what only advised is denied":                     {fence: fence(4, "pods", "3"), limits: limits("pods", "3", "cpu", "9").advising("pods", "cpu"), want: denied("3")},
		"by the fence's limit, also if that is higher":    {fence: fence(4, "pods", "4"), limits: limits("pods", "1", "cpu", "9").advising("pods"), want: Granted{}},
		"and if it is lower":                              {fence: fence(4, "pods", "2"), limits: limits("pods", "9", "cpu", "9").advising("pods"), want: denied("2")},
		"by the lower one if it was enforced":             {fence: fence(4, "pods", "9"), limits: limits("pods", "3", "cpu", "9"), want: denied("3")},
		"what wasn't limited at all is denied":            {fence: fence(4, "pods", "3"), limits: limits("cpu", "9").advising("cpu"), want: denied("3")},
		"what was only tried is denied":                   {fence: fence(4, "pods", "3"), limits: limits("cpu", "9").trying("pods", "9"), want: denied("3")},
		"what the fence doesn't limit goes on to advise":  {fence: fence(4, "cpu", "9"), limits: limits("pods", "3", "cpu", "1").advising("pods", "cpu"), want: remarked(audited)},
		"who knows the fenced spec goes by that":          {fence: fence(3, "pods", "0"), limits: limits("pods", "3").advising("pods"), want: remarked(audited)},
		"a fence that enforces nothing changes no answer": {fence: fence(4), limits: limits("pods", "3").advising("pods"), want: remarked(audited)},
	} {
		t.Run(name, func(t *testing.T) {
			given := test.limits
			given.Advisory, given.Hard = maps.Clone(given.Advisory), given.Hard.DeepCopy()
			if diff := cmp.Diff(test.want, Edit(raised(state, test.fence)).Reserve(asking(given, pod))); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(test.limits, given); diff != "" {
				t.Errorf("to judge changed the limits of the caller (-want,+got):\n%s", diff)
			}
		})
	}
}

// Of what isn't enforced, as much is taken in escrow as is wanted.
func TestAffordableOfWhatIsNotEnforced(t *testing.T) {
	judged := limits("pods", "100", "cpu", "10").trying("memory", "1").advising("pods", "memory")
	draft := Edit(counted("pods", "500", "cpu", "2", "memory", "7").with(escrowOf("you", "pods", "90")))
	for name, test := range map[string]struct{ wanted, want corev1.ResourceList }{
		"more than is free":             {wanted: list("pods", "300"), want: list("pods", "300")},
		"of a trial":                    {wanted: list("memory", "9"), want: list("memory", "9")},
		"beside what is enforced":       {wanted: list("pods", "300", "cpu", "9"), want: list("pods", "300", "cpu", "2")},
		"nothing of what isn't counted": {wanted: list("secrets", "1"), want: list()},
	} {
		t.Run(name, func(t *testing.T) {
			if got := draft.affordable(test.wanted, judged, 4); !quota.Equals(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// What is granted from escrow carries its remarks, and they don't hold the escrow against it.
func TestSpendRemarks(t *testing.T) {
	held := escrowOf("me", "pods", "2")
	draft := Edit(counted("pods", "3").with(held))
	for range 2 { // first as a probe
		got, ok := draft.Spend(held.Key(), asking(limits("pods", "3").advising("pods"), creation("a", "a", "pods", "1")), true)
		want := []Remark{remark(Unenforced, list("pods", "1"), list("pods", "3"), list("pods", "3"))}
		if diff := cmp.Diff(want, got.Remarks); !ok || diff != "" {
			t.Errorf("granted: %v; (-want,+got):\n%s", ok, diff)
		}
	}
}

func TestHeld(t *testing.T) {
	taken := creation("a", "a", "pods", "1", "cpu", "1", "memory", "9")
	state := counted("pods", "3", "cpu", "0").with(taken, escrowOf("me", "pods", "2", "cpu", "1"), escrowOf("you", "pods", "5"))
	want := list("pods", "4", "cpu", "1")
	if got := state.Held(); !quota.Equals(got, want) || len(got) != len(want) {
		t.Errorf("got %v, want %v: without escrows, and without what isn't counted", got, want)
	}
	if got := (State{}).Held(); len(got) > 0 {
		t.Errorf("got %v of a ledger without a count", got)
	}
}
