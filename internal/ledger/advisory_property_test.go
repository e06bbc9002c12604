// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"pgregory.net/rapid"
)

// trace draws a trace of charges, releases and settles, which several quotas live through alike.
type trace struct {
	t      *rapid.T
	hard   corev1.ResourceList
	uids   int
	flying []Reservation
	lived  figures
	upTo   uint64
}

func newTrace(t *rapid.T) *trace {
	limit := rapid.Int64Range(0, 8)
	return &trace{
		t: t, upTo: 10, lived: figures{podCount: 0, devices: 0},
		hard: limits(podCount.String(), fmt.Sprint(limit.Draw(t, "pods")), devices.String(), fmt.Sprint(limit.Draw(t, "devices"))).Hard,
	}
}

// begin is the ledger that all begin with.
func (tr *trace) begin() State {
	return State{Basis: basis(), Used: list(podCount.String(), "0", devices.String(), "0"), Counted: tr.counted()}
}

func (tr *trace) counted() map[schema.GroupResource]uint64 {
	return map[schema.GroupResource]uint64{podResource.GroupResource(): tr.upTo, Namespaces: 1}
}

// charge draws a charge: of a new object, of an update, or of a name that others ask for.
func (tr *trace) charge() Reservation {
	tr.uids++
	amounts := figures{podCount: 1, devices: rapid.Int64Range(0, 3).Draw(tr.t, "devices")}
	held := Reservation{
		Object: Object{
			Resource: podResource, Namespace: "old", Name: rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(tr.t, "name"),
			UID: types.UID(fmt.Sprint("uid", tr.uids)),
		},
		Amounts: amounts.list(), Expiry: expiry,
	}
	if rapid.IntRange(0, 3).Draw(tr.t, "updates") == 0 {
		held.From, held.Attempt = fmt.Sprint(rapid.IntRange(1, 3).Draw(tr.t, "from")), fmt.Sprint(tr.uids)
		held.Amounts = figures{devices: 1 + amounts[devices]}.list()
	}
	tr.flying = append(tr.flying, held)
	return held
}

// step draws a change of a ledger; nil for a charge.
func (tr *trace) step() func(*Draft) {
	switch kind := rapid.IntRange(0, 4).Draw(tr.t, "step"); {
	case kind < 3 || len(tr.flying) == 0:
		return nil
	case kind == 3:
		ended := tr.take()
		return func(draft *Draft) { draft.Release(ended.Key()) }
	default:
		came := tr.take()
		tr.lived.add(figuresOf(came.Amounts))
		if rapid.Bool().Draw(tr.t, "others go") {
			tr.lived = figures{podCount: 0, devices: 0}
		}
		tr.upTo++
		count := Observation{
			Basis: basis(), Used: corev1.ResourceList{}, Counted: tr.counted(),
			Sources: map[corev1.ResourceName][]schema.GroupResource{
				podCount: {podResource.GroupResource()}, devices: {podResource.GroupResource()},
			},
			Seen: func(held Reservation) bool { return held.Key() == came.Key() },
		}
		for name, amount := range tr.lived {
			count.Used[name] = *quantityOf(amount)
		}
		return func(draft *Draft) { draft.Settle(count) }
	}
}

func (tr *trace) take() Reservation {
	at := rapid.IntRange(0, len(tr.flying)-1).Draw(tr.t, "which")
	taken := tr.flying[at]
	tr.flying = slices.Delete(slices.Clone(tr.flying), at, at+1)
	return taken
}

// enforced is a quota of the trace's limits.
func (tr *trace) enforced() Limits { return Limits{Name: "team", Basis: basis(), Hard: tr.hard} }

func refusalsIn(decision Decision) []Decision {
	granted, _ := decision.(Granted)
	var refusals []Decision
	for _, remark := range granted.Remarks {
		refusals = append(refusals, remark.Refusal)
	}
	return refusals
}

// Up to the first refusal a quota that only watches has the ledger of a quota that denies, and its first remark is the
// other's answer.
func TestToWatchIsToDenyUpToTheFirstRefusal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drawn := newTrace(t)
		denies, watches := drawn.begin(), drawn.begin()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			one, beside := Edit(denies), Edit(watches)
			if step := drawn.step(); step != nil {
				step(one)
				step(beside)
			} else if drawn.isRefused(one, beside) {
				return
			}
			denies, watches = one.State(), beside.State()
			if diff := gocmp.Diff(denies, watches, cmpopts.IgnoreUnexported(State{})); diff != "" {
				t.Fatalf("the ledgers differ (-denies,+watches):\n%s", diff)
			}
		}
	})
}

// isRefused charges a quota that denies and a quota that only watches, and reports whether the first one refused.
func (tr *trace) isRefused(denies, watches *Draft) bool {
	charge := tr.charge()
	decision := denies.Reserve(asking(tr.enforced(), charge))
	remarks := refusalsIn(watches.Reserve(asking(tr.enforced().advising(), charge)))
	if IsGranted(decision) {
		if len(remarks) > 0 {
			tr.t.Fatalf("%v is remarked on, and would have been granted", remarks)
		}
		return false
	}
	if diff := gocmp.Diff([]Decision{decision}, remarks); diff != "" {
		tr.t.Fatalf("the first refusal (-denied,+remarked):\n%s", diff)
	}
	return true
}

// A quota that only watches grants everything, and its ledger is that of a quota
// without limits.
func TestToWatchIsToCountAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drawn := newTrace(t)
		watching, unlimited := drawn.enforced().advising(), drawn.enforced()
		unlimited.Hard = list(podCount.String(), "1G", devices.String(), "1G")
		free, watches := drawn.begin(), drawn.begin()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			one, other := Edit(free), Edit(watches)
			if step := drawn.step(); step != nil {
				step(one)
				step(other)
			} else {
				charge := drawn.charge()
				if !IsGranted(one.Reserve(asking(unlimited, charge))) || !IsGranted(other.Reserve(asking(watching, charge))) {
					t.Fatal("want both granted")
				}
			}
			free, watches = one.State(), other.State()
		}
		if diff := gocmp.Diff(free, watches, cmpopts.IgnoreUnexported(State{})); diff != "" {
			t.Fatalf("the ledgers differ (-unlimited,+watches):\n%s", diff)
		}
	})
}

// The model knows no index, no draft and no modes, and adds up everything for each charge.
func TestDenyDecidesAsTheModelDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drawn := newTrace(t)
		state := drawn.begin()
		amount := rapid.Int64Range(0, 5)
		for range rapid.IntRange(0, 6).Draw(t, "held") {
			held := drawn.charge()
			state = state.with(held)
		}
		if rapid.Bool().Draw(t, "escrow") {
			state = state.holding(escrowOf("you", podCount.String(), fmt.Sprint(amount.Draw(t, "escrow"))))
		}
		for name := range state.Used {
			state.Used[name] = *quantityOf(amount.Draw(t, name.String()))
		}
		judged := drawn.enforced()
		if rapid.IntRange(0, 3).Draw(t, "fence") == 0 {
			state = raised(state, fence(rapid.Int64Range(2, 5).Draw(t, "of"), podCount.String(), fmt.Sprint(amount.Draw(t, "fence"))))
		}
		switch rapid.IntRange(0, 9).Draw(t, "oddity") {
		case 0:
			delete(state.Used, rapid.SampledFrom([]corev1.ResourceName{podCount, devices}).Draw(t, "uncounted"))
		case 1:
			state.Generation = rapid.Int64Range(2, 4).Draw(t, "generation")
		case 2:
			state.Digest = "other"
		case 3:
			state.Quota = "other"
		case 4:
			state.Sealed = expiry
		case 5:
			delete(judged.Hard, devices)
		}
		if rapid.Bool().Draw(t, "indexed") {
			state = state.Indexed()
		}
		charge := Charge{Limits: judged, Reservation: drawn.charge(), Knowledge: Knowledge{
			Joined: rapid.Uint64Range(0, 2).Draw(t, "namespace"), Seen: rapid.Uint64Range(0, 3).Draw(t, "seen"),
		}}
		if len(quota.Mask(charge.Reservation.Amounts, quota.ResourceNames(judged.Hard))) == 0 {
			return // such are not charged
		}
		if diff := gocmp.Diff(decidedBefore(state, charge), Edit(state).Reserve(charge)); diff != "" {
			t.Fatalf("(-before,+now):\n%s\n%+v\n%+v", diff, state, charge)
		}
	})
}

// decidedBefore is the model.
func decidedBefore(state State, charge Charge) Decision {
	hard, amounts := figures{}, figures{}
	for name, limit := range charge.Limits.Hard {
		hard[name] = limit.Value()
		if amount, asked := charge.Reservation.Amounts[name]; asked {
			amounts[name] = amount.Value()
		}
	}
	undecided := func(reason Reason) Undecided {
		return Undecided{Quota: charge.Limits.Name, Reason: reason, Resources: sortedNames(quantitiesOf(amounts))}
	}
	members := state.Counted[Namespaces]
	switch {
	case state.Quota == charge.Limits.Quota && state.Generation > charge.Limits.Generation:
		return undecided(StaleLimits)
	case state.Quota != charge.Limits.Quota, state.Digest != charge.Limits.Digest:
		return undecided(NotCounted)
	case !state.Sealed.IsZero():
		return undecided(Sealed)
	}
	for name := range amounts {
		if _, counted := state.Used[name]; !counted {
			return undecided(NotCounted)
		}
	}
	switch {
	case charge.Knowledge.Seen < members:
		stale := undecided(StaleNamespaces)
		stale.Members = members
		return stale
	case charge.Knowledge.Joined > members:
		return undecided(NotJoined)
	}
	if state.Fence.Generation > charge.Limits.Generation {
		for name, limit := range state.Fence.Hard {
			if known, limited := hard[name]; !limited || limit.Value() < known {
				hard[name] = limit.Value()
			}
		}
	}
	reserved, with := slices.Collect(maps.Values(state.Reservations)), charge.Reservation
	with.Amounts = quantitiesOf(amounts)
	before, after := figuresOf(state.Used), figuresOf(state.Used)
	for _, escrow := range state.Escrows {
		before.add(figuresOf(escrow.Amounts))
		after.add(figuresOf(escrow.Amounts))
	}
	before.add(largestOfEachSlot(reserved))
	after.add(largestOfEachSlot(append(slices.DeleteFunc(reserved, func(r Reservation) bool { return r.Key() == with.Key() }), with)))
	denied := Denied{
		Quota: charge.Limits.Name, Requested: corev1.ResourceList{}, Used: corev1.ResourceList{}, Limited: corev1.ResourceList{},
	}
	for name, amount := range amounts {
		if limit, limited := hard[name]; limited && after[name] > limit {
			denied.Requested[name], denied.Used[name], denied.Limited[name] = *quantityOf(amount), *quantityOf(before[name]), *quantityOf(limit)
		}
	}
	if len(denied.Requested) > 0 {
		return denied
	}
	return Granted{}
}

// The sum of escrows that is carried from draft to draft equals the reservations' sum after every change.
func TestTheSumOfEscrowsIsThatOfARecount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drawn := newTrace(t)
		state := drawn.begin()
		holders := rapid.SampledFrom([]types.UID{"me", "you"})
		amount := rapid.Int64Range(0, 4)
		key := func() EscrowKey { return EscrowKey{Process: holders.Draw(t, "holder"), Number: 1} }
		escrow := func() Escrow {
			return Escrow{EscrowKey: key(), Amounts: quantitiesOf(figures{podCount: amount.Draw(t, "pods"), devices: amount.Draw(t, "devices")})}
		}
		watching := drawn.enforced().advising()
		actions := map[string]func(*Draft){
			"put":     func(d *Draft) { d.Hold(escrow()) },
			"return":  func(d *Draft) { d.Return(key()) },
			"recall":  func(d *Draft) { d.Recall(holders.Draw(t, "own")) },
			"admit":   func(d *Draft) { d.Admit(drawn.charge()) },
			"spend":   func(d *Draft) { d.Spend(key(), asking(watching, drawn.charge()), false) },
			"probe":   func(d *Draft) { d.Spend(key(), asking(watching, drawn.charge()), true) },
			"reserve": func(d *Draft) { d.Reserve(asking(watching, drawn.charge())) },
			"spent":   func(d *Draft) { d.Spent(key(), []Reservation{drawn.charge()}) },
			"bound":   func(d *Draft) { next := escrow(); d.Bound(key(), &next, nil) },
			"take": func(d *Draft) {
				demand := Demand{}
				demand.Add(expiry, time.Second, asking(watching, drawn.charge()))
				d.Take(escrow(), demand, watching, 4)
			},
			"other": func(d *Draft) {
				if step := drawn.step(); step != nil {
					step(d)
				}
			},
		}
		names := slices.Sorted(maps.Keys(actions))
		for range rapid.IntRange(1, 15).Draw(t, "steps") {
			draft := Edit(state)
			actions[rapid.SampledFrom(names).Draw(t, "action")](draft)
			if state = draft.State(); rapid.IntRange(0, 4).Draw(t, "forget the index") == 0 {
				state.index = nil
			}
		}
		escrows := figures{}
		for _, held := range state.Escrows {
			escrows.add(figuresOf(held.Amounts))
		}
		all, used := slices.Collect(maps.Values(state.Reservations)), figuresOf(state.Used)
		want := figures{}
		want.add(used)
		want.add(largestOfEachSlot(all))
		if got := figuresOf(state.held()); !quota.Equals(quantitiesOf(got), quantitiesOf(want)) {
			t.Fatalf("held: got %v, want %v", got, want)
		}
		if got := quota.RemoveZeros(state.Indexed().index.escrowed); !quota.Equals(got, escrows.list()) {
			t.Fatalf("escrowed: got %v, want %v", got, escrows)
		}
		escrows.add(largestOfEachSlot(all))
		if got := quota.RemoveZeros(state.Reserved()); !quota.Equals(got, escrows.list()) {
			t.Fatalf("reserved: got %v, want %v", got, escrows)
		}
	})
}

func quantityOf(amount int64) *resource.Quantity {
	return resource.NewQuantity(amount, resource.DecimalSI)
}

// quantitiesOf keeps zeros.
func quantitiesOf(amounts figures) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, amount := range amounts {
		list[name] = *quantityOf(amount)
	}
	return list
}
