// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func (l Limits) surging(surge ...string) Limits {
	l.Surge = list(surge...)
	return l
}

func surgerOf(uid types.UID) Surger {
	return Surger{UID: uid, Kind: "Deployment", Namespace: "ns", Name: "web", Since: expiry}
}

// replacing is the charge of an object that replaces another one of a workload.
func replacing(charge Charge, workload types.UID) Charge {
	charge.Replaces = surgerOf(workload)
	return charge
}

func TestOnlyReplacementsTakeSurge(t *testing.T) {
	pods, both := limits("pods", "10").surging("pods", "2"), limits("pods", "10", "cpu", "4").surging("pods", "2")
	for name, test := range map[string]struct {
		limits Limits
		used   State
		// replaces is whether the object does, and asked is its cost.
		replaces bool
		asked    corev1.ResourceList
		want     Decision
	}{
		"a charge that fits in the limit needs no surge": {limits: pods, used: counted("pods", "9"), asked: list("pods", "1"), want: Granted{}},
		"neither does one of a replacement":              {limits: pods, used: counted("pods", "9"), replaces: true, asked: list("pods", "1"), want: Granted{}},
		"a replacement takes surge":                      {limits: pods, used: counted("pods", "10"), replaces: true, asked: list("pods", "1"), want: Granted{}},
		"it takes all of the surge at once":              {limits: pods, used: counted("pods", "10"), replaces: true, asked: list("pods", "2"), want: Granted{}},
		"another object takes none, and may prove that it is a replacement": {
			limits: pods, used: counted("pods", "10"), asked: list("pods", "1"),
			want: Denied{Quota: "team", Requested: list("pods", "1"), Used: list("pods", "10"), Limited: list("pods", "10"), Provable: true},
		},
		"surge that others have taken counts against the limit": {
			limits: pods, used: counted("pods", "11"), asked: list("pods", "1"),
			want: Denied{Quota: "team", Requested: list("pods", "1"), Used: list("pods", "11"), Limited: list("pods", "10"), Provable: true},
		},
		"a replacement that the surge is too small for is told so": {
			limits: pods, used: counted("pods", "11"), replaces: true, asked: list("pods", "2"),
			want: Denied{Quota: "team", Requested: list("pods", "2"), Used: list("pods", "11"), Limited: list("pods", "10"), Replaces: true, Surge: list("pods", "2")},
		},
		"without surge, a replacement is as any other": {
			limits: limits("pods", "10"), used: counted("pods", "10"), replaces: true, asked: list("pods", "1"),
			want: Denied{Quota: "team", Requested: list("pods", "1"), Used: list("pods", "10"), Limited: list("pods", "10"), Replaces: true, Surge: list()},
		},
		"without surge, it doesn't matter whether an object is a replacement": {
			limits: limits("pods", "10"), used: counted("pods", "10"), asked: list("pods", "1"),
			want: Denied{Quota: "team", Requested: list("pods", "1"), Used: list("pods", "10"), Limited: list("pods", "10")},
		},
		"a surge of zero is none": {
			limits: limits("pods", "10").surging("pods", "0"), used: counted("pods", "10"), asked: list("pods", "1"),
			want: Denied{Quota: "team", Requested: list("pods", "1"), Used: list("pods", "10"), Limited: list("pods", "10")},
		},
		"a replacement takes surge of one resource, and fits in the limit of another": {
			limits: both, used: counted("pods", "10", "cpu", "3"), replaces: true, asked: list("pods", "1", "cpu", "1"), want: Granted{},
		},
		"a replacement needs surge of each resource that doesn't fit": {
			limits: both, used: counted("pods", "10", "cpu", "4"), replaces: true, asked: list("pods", "1", "cpu", "1"),
			want: Denied{Quota: "team", Requested: list("cpu", "1"), Used: list("cpu", "4"), Limited: list("cpu", "4"), Replaces: true, Surge: list()},
		},
		"a proof tells others, too, that an object lacks a resource without surge alone": {
			limits: both, used: counted("pods", "10", "cpu", "4"), asked: list("pods", "1", "cpu", "1"),
			want: Denied{
				Quota: "team", Requested: list("pods", "1", "cpu", "1"), Used: list("pods", "10", "cpu", "4"), Limited: list("pods", "10", "cpu", "4"),
				Provable: true,
			},
		},
		"a proof may help an object that lacks the resource with surge alone": {
			limits: both, used: counted("pods", "10", "cpu", "3"), asked: list("pods", "1", "cpu", "1"),
			want: Denied{Quota: "team", Requested: list("pods", "1"), Used: list("pods", "10"), Limited: list("pods", "10"), Provable: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			charge := asking(test.limits, creation("a", "a"))
			charge.Reservation.Amounts = test.asked
			if test.replaces {
				charge = replacing(charge, "web")
			}
			if diff := cmp.Diff(test.want, Edit(test.used).Reserve(charge)); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func TestTightnessWithSurge(t *testing.T) {
	surging := limits("pods", "100").surging("pods", "50")
	for name, test := range map[string]struct {
		used     string
		replaces bool
		want     bool
	}{
		"much is free":                              {used: "10"},
		"little is free of the limit":               {used: "80", want: true},
		"an object that is going to be refused":     {used: "100"},
		"a replacement that is going to take surge": {used: "100", replaces: true, want: true},
		"a replacement that leaves much free":       {used: "10", replaces: true},
	} {
		t.Run(name, func(t *testing.T) {
			charge := asking(surging, creation("a", "a", "pods", "1"))
			if test.replaces {
				charge = replacing(charge, "web")
			}
			if got := counted("pods", test.used).IsTight(charge, nil); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestRoomWithSurge(t *testing.T) {
	state := counted("pods", "11", "cpu", "1")
	known := limits("pods", "10", "cpu", "4").surging("pods", "3")
	for name, test := range map[string]struct {
		fence Fence
		want  Room
	}{
		"surge is told apart from the limit": {
			want: Room{Hard: list("pods", "10", "cpu", "4"), Left: list("pods", "-1", "cpu", "3"), Surge: list("pods", "3")},
		},
		"a lowered surge binds": {
			fence: Fence{Generation: 4, Hard: list("pods", "10"), Surge: list("pods", "1"), Until: expiry},
			want:  Room{Hard: list("pods", "10", "cpu", "4"), Left: list("pods", "-1", "cpu", "3"), Surge: list("pods", "1")},
		},
		"a removed surge is none": {
			fence: Fence{Generation: 4, Hard: list("pods", "10"), Until: expiry},
			want:  Room{Hard: list("pods", "10", "cpu", "4"), Left: list("pods", "-1", "cpu", "3"), Surge: list()},
		},
	} {
		t.Run(name, func(t *testing.T) {
			fenced := state
			fenced.Fence = test.fence
			got, reason := fenced.Room(known, Knowledge{})
			if diff := cmp.Diff(test.want, got); diff != "" || reason != "" {
				t.Errorf("reason %q (-want,+got):\n%s", reason, diff)
			}
		})
	}
}

func fenceWith(generation int64, hard, surge corev1.ResourceList) Fence {
	return Fence{Generation: generation, Hard: hard, Surge: surge, Until: expiry}
}

func TestAFenceBindsSurge(t *testing.T) {
	state := counted("pods", "11")
	known := limits("pods", "10").surging("pods", "3")
	for name, test := range map[string]struct {
		fences  []Fence
		limits  Limits
		granted bool
	}{
		"the surge that is known decides without a fence":    {limits: known, granted: true},
		"a lowered surge decides":                            {fences: []Fence{fenceWith(4, list("pods", "10"), list("pods", "1"))}, limits: known},
		"a removed surge decides":                            {fences: []Fence{fenceWith(4, list("pods", "10"), nil)}, limits: known},
		"a raised surge doesn't hold yet":                    {fences: []Fence{fenceWith(4, list("pods", "10"), list("pods", "9"))}, limits: limits("pods", "10").surging("pods", "1")},
		"a lower limit with more surge may allow as much":    {fences: []Fence{fenceWith(4, list("pods", "8"), list("pods", "5"))}, limits: known, granted: true},
		"a lower limit with the same surge allows less":      {fences: []Fence{fenceWith(4, list("pods", "8"), list("pods", "3"))}, limits: known},
		"of two edits under way both bind":                   {fences: []Fence{fenceWith(4, list("pods", "10"), nil), fenceWith(5, list("pods", "10"), list("pods", "9"))}, limits: known},
		"also in the other order":                            {fences: []Fence{fenceWith(4, list("pods", "10"), list("pods", "9")), fenceWith(5, list("pods", "10"), nil)}, limits: known},
		"a fence of another resource leaves the surge":       {fences: []Fence{fenceWith(4, list("cpu", "1"), nil)}, limits: known, granted: true},
		"it is enforced in place of limits that only advise": {fences: []Fence{fenceWith(4, list("pods", "10"), list("pods", "1"))}, limits: func() Limits { l := known; l.Advisory = true; return l }()},
	} {
		t.Run(name, func(t *testing.T) {
			draft := Edit(raised(state, test.fences...))
			decision := draft.Reserve(replacing(asking(test.limits, creation("a", "a", "pods", "1")), "web"))
			if IsGranted(decision) != test.granted {
				t.Errorf("got %+v", decision)
			}
		})
	}
}

func TestAFenceTakesTheSurgeOfTheStoredSpec(t *testing.T) {
	draft := Edit(raised(counted("pods", "10"), fenceWith(4, list("pods", "10"), nil)))
	draft.UpdateFence(5, limits("pods", "10", "cpu", "1").surging("pods", "2", "cpu", "1"))
	if diff := cmp.Diff(fenceWith(4, list("pods", "10"), list("pods", "2")), draft.State().Fence); diff != "" {
		t.Errorf("a surge that was stored since (-want,+got):\n%s", diff)
	}
	draft = Edit(raised(counted("pods", "10"), fenceWith(6, list("pods", "10"), list("pods", "1"))))
	draft.UpdateFence(5, limits("pods", "10").surging("pods", "9"))
	if diff := cmp.Diff(fenceWith(6, list("pods", "10"), list("pods", "1")), draft.State().Fence); diff != "" {
		t.Errorf("one of an edit under way (-want,+got):\n%s", diff)
	}
}

// A charge fits by both of two limits if and only if it fits by each.
func TestTighterLimitsAreThoseOfBoth(t *testing.T) {
	names := []corev1.ResourceName{"pods", "cpu", "memory"}
	amounts := rapid.Custom(func(t *rapid.T) corev1.ResourceList {
		list := corev1.ResourceList{}
		for _, name := range names {
			if rapid.Bool().Draw(t, string(name)) {
				list[name] = *resource.NewQuantity(rapid.Int64Range(0, 6).Draw(t, "amount"), resource.DecimalSI)
			}
		}
		return list
	})
	rapid.Check(t, func(t *rapid.T) {
		one := Limits{Name: "team", Basis: basis(), Hard: amounts.Draw(t, "hard"), Surge: amounts.Draw(t, "surge")}
		fence := fenceWith(one.Generation+1, amounts.Draw(t, "fenced hard"), amounts.Draw(t, "fenced surge"))
		other := one
		other.Hard, other.Surge = fence.Hard, fence.Surge
		used := State{Basis: basis(), Used: corev1.ResourceList{}}
		for _, name := range names {
			used.Used[name] = *resource.NewQuantity(rapid.Int64Range(0, 8).Draw(t, "used"), resource.DecimalSI)
		}
		charge := Charge{Reservation: creation("a", "a")}
		charge.Reservation.Amounts = amounts.Draw(t, "asked")
		if rapid.Bool().Draw(t, "replaces") {
			charge.Replaces = surgerOf("web")
		}
		fits := func(state State, limits Limits) bool {
			charge.Limits = limits
			return IsGranted(Edit(state).Judge(charge))
		}
		both := one
		both.Hard, both.Surge = tighter(one.Hard, one.Surge, other.Hard, other.Surge)
		fenced := used
		fenced.Fence = fence
		want := fits(used, one) && fits(used, other)
		if got := fits(used, both); got != want {
			t.Errorf("it fits by both: %v, by hard %v and surge %v: %v", want, both.Hard, both.Surge, got)
		}
		if got := fits(fenced, one); got != want {
			t.Errorf("it fits by both: %v, by a fence: %v", want, got)
		}
		if twice := Edit(raised(used, fence, fenceWith(fence.Generation, one.Hard, one.Surge))).State(); fits(twice, other) != want || fits(twice, one) != want {
			t.Errorf("it fits by both: %v, not so by a fence that was raised twice, %+v", want, twice.Fence)
		}
	})
}

// counts returns a count of pods for the basis of the tests.
func countOf(hard, used string) Observation {
	observed := count(list("pods", used), versions{namespaceResource: 10, pods: 10})
	observed.Sources = map[corev1.ResourceName][]schema.GroupResource{"pods": {pods}}
	observed.Hard = list("pods", hard)
	return observed
}

func TestWorkloadsAreNamedWhileTheySurge(t *testing.T) {
	surging := limits("pods", "10").surging("pods", "5")
	draft := Edit(counted("pods", "9"))
	reserve := func(n int, workload types.UID, since time.Time) {
		t.Helper()
		charge := asking(surging, creation(types.UID(fmt.Sprint("pod", n)), fmt.Sprint("pod", n), "pods", "1"))
		charge.Replaces = surgerOf(workload)
		charge.Replaces.Since = since
		if decision := draft.Reserve(charge); !IsGranted(decision) {
			t.Fatalf("got %+v", decision)
		}
	}
	reserve(1, "early", expiry)
	if named := draft.State().Surgers; len(named) > 0 {
		t.Errorf("a replacement that fits in the limit is named: %v", named)
	}
	draft = Edit(draft.State())
	reserve(2, "web", expiry)
	reserve(3, "web", expiry.Add(time.Hour))
	reserve(4, "api", expiry)
	if diff := cmp.Diff(map[types.UID]Surger{"web": surgerOf("web"), "api": surgerOf("api")}, draft.Peek().Surgers); diff != "" {
		t.Errorf("each is named once, from when it first took some (-want,+got):\n%s", diff)
	}
	if carried, anew := draft.Size(), sizeAnew(draft.Peek()); carried != anew {
		t.Errorf("the size is %d, and made anew %d", carried, anew)
	}
	state := draft.State()

	draft = Edit(state)
	draft.Settle(countOf("10", "11"))
	if named := draft.Peek().Surgers; len(named) != 2 {
		t.Errorf("more is used than the limit, and %v are named", named)
	}
	for n := 2; n <= 4; n++ {
		draft.Release(creation(types.UID(fmt.Sprint("pod", n)), "", "pods", "1").Key())
	}
	draft = Edit(draft.State())
	draft.Settle(countOf("10", "9"))
	if named := draft.Peek().Surgers; len(named) > 0 || !draft.Changed() {
		t.Errorf("all that is charged is within the limit, and %v are named; stored: %v", named, draft.Changed())
	}
	if carried, anew := draft.Size(), sizeAnew(draft.Peek()); carried != anew {
		t.Errorf("the size is %d, and made anew %d", carried, anew)
	}
	draft = Edit(state)
	draft.Settle(countOf("20", "11"))
	if named := draft.Peek().Surgers; len(named) > 0 {
		t.Errorf("the limit was raised, and %v are named", named)
	}
}

func sizeAnew(state State) int {
	state.index = nil
	return Edit(state).Size()
}

func TestOnlySoManyWorkloadsAreNamed(t *testing.T) {
	surging := limits("pods", "10").surging("pods", "100")
	draft := Edit(counted("pods", "10"))
	for n := range MaxSurgers + 5 {
		one := creation(types.UID(fmt.Sprint("pod", n)), fmt.Sprint("pod", n), "pods", "1")
		if decision := draft.Reserve(replacing(asking(surging, one), types.UID(fmt.Sprint("web", n)))); !IsGranted(decision) {
			t.Fatalf("got %+v", decision)
		}
	}
	if named := len(draft.Peek().Surgers); named != MaxSurgers {
		t.Errorf("%d are named", named)
	}
	if carried, anew := draft.Size(), sizeAnew(draft.Peek()); carried != anew {
		t.Errorf("the size is %d, and made anew %d", carried, anew)
	}
}

// More is used of another resource than its limit, and a replacement fits in those that it costs.
func TestAWorkloadThatTakesNoSurgeIsNotNamed(t *testing.T) {
	surging := limits("pods", "10", "cpu", "4").surging("pods", "2", "cpu", "2")
	draft := Edit(counted("pods", "1", "cpu", "5"))
	if decision := draft.Reserve(replacing(asking(surging, creation("a", "a", "pods", "1")), "web")); !IsGranted(decision) {
		t.Fatalf("got %+v", decision)
	}
	if named := draft.Peek().Surgers; len(named) > 0 {
		t.Errorf("got %v", named)
	}
}

// A quota that refuses nothing has no surge to take.
func TestNoWorkloadIsNamedByAQuotaThatRefusesNothing(t *testing.T) {
	auditing := limits("pods", "10").surging("pods", "2")
	auditing.Advisory = true
	draft := Edit(counted("pods", "10"))
	if decision := draft.Reserve(replacing(asking(auditing, creation("a", "a", "pods", "1")), "web")); !IsGranted(decision) {
		t.Fatalf("got %+v", decision)
	}
	if named := draft.Peek().Surgers; len(named) > 0 {
		t.Errorf("got %v", named)
	}
}

func TestEscrowTakesNoSurge(t *testing.T) {
	now := time.Unix(1000, 0)
	surging := limits("pods", "10").surging("pods", "6")
	for name, test := range map[string]struct {
		used string
		want corev1.ResourceList
	}{
		"as much as the limit leaves":                 {used: "6", want: list("pods", "4")},
		"no more than is left":                        {used: "9", want: list("pods", "1")},
		"none if the limit is reached":                {used: "10"},
		"none if others have taken some of the surge": {used: "12"},
	} {
		t.Run(name, func(t *testing.T) {
			var demand Demand
			for range 10 {
				demand.Add(now, time.Second, replacing(asking(surging, creation("a", "a", "pods", "1")), "web"))
			}
			draft := Edit(counted("pods", test.used))
			taken := draft.Take(escrowOf("process"), demand, surging, 1)
			var got corev1.ResourceList
			if taken != nil {
				got = taken.Amounts
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("taken (-want,+got):\n%s", diff)
			}
		})
	}
}

// Escrow was charged within the limit. But since then, replacements took surge, so who isn't one waits.
func TestEscrowGrantsNobodyElseWhileOthersSurge(t *testing.T) {
	surging := limits("pods", "10").surging("pods", "6")
	held := escrowOf("process", "pods", "2")
	draft := Edit(counted("pods", "10").holding(held))
	plain := asking(surging, creation("a", "a", "pods", "1"))
	if granted, ok := draft.Spend(held.EscrowKey, plain, false); ok {
		t.Errorf("got %+v", granted)
	}
	if _, ok := draft.Spend(held.EscrowKey, replacing(plain, "web"), false); !ok {
		t.Error("a replacement is refused though there is escrow")
	}
	charged := draft.Charged()["pods"]
	if charged.String() != "12" {
		t.Errorf("%s are charged", charged.String())
	}
}

// The share of a namespace whose requests seem to have failed is of the limit that a charge is judged by.
func TestAReplacementIsNotWithheldFromSurge(t *testing.T) {
	doubtful := creation("lost", "lost", "pods", "2")
	doubtful.Doubtful = true
	charge := replacing(asking(limits("pods", "2").surging("pods", "2"), creation("a", "a", "pods", "1")), "web")
	for percent, granted := range map[int64]bool{100: true, 75: true, 50: false} {
		charge.MaxDoubtful = percent
		if decision := Edit(counted("pods", "0").with(doubtful)).Reserve(charge); IsGranted(decision) != granted {
			t.Errorf("%d%%: got %+v", percent, decision)
		}
	}
}

// Escrow of a resource without surge is returned before a denial. So it doesn't make a proof useless.
func TestEscrowLeavesADenialProvable(t *testing.T) {
	both := limits("pods", "10", "cpu", "4").surging("pods", "2")
	for name, test := range map[string]struct {
		escrow Escrow
		limits Limits
		want   bool
	}{
		"the limit is reached by escrow alone":      {escrow: escrowOf("other", "cpu", "1"), limits: both, want: true},
		"no resource has surge":                     {escrow: escrowOf("other", "cpu", "1"), limits: limits("pods", "10", "cpu", "4")},
		"the resource with surge is held in escrow": {escrow: escrowOf("other", "pods", "9", "cpu", "1"), limits: both, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			used := counted("pods", "10", "cpu", "4")
			for resource, amount := range test.escrow.Amounts {
				rest := used.Used[resource]
				rest.Sub(amount)
				used.Used[resource] = rest
			}
			decision := Edit(used.holding(test.escrow)).Judge(asking(test.limits, creation("a", "a", "pods", "1", "cpu", "1")))
			denied, ok := decision.(Denied)
			if !ok || denied.Provable != test.want || len(denied.Requested) != 2 {
				t.Errorf("got %+v", decision)
			}
		})
	}
}
