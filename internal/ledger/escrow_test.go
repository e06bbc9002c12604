// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// A grant from an escrow doesn't change the charged amounts.
func TestSpend(t *testing.T) {
	held := escrowOf("me", "pods", "2", "cpu", "500m")
	taken := creation("t", "taken", "pods", "1")
	state := counted("pods", "5", "cpu", "1").with(taken).holding(held)
	for name, test := range map[string]struct {
		charge Charge
		from   EscrowKey
		change func(*Draft)
		want   bool
	}{
		"there is enough":                {charge: asking(limits("pods", "9", "cpu", "2"), creation("a", "a", "pods", "1", "cpu", "500m")), want: true},
		"of what the quota limits":       {charge: asking(limits("pods", "9"), creation("a", "a", "pods", "1", "memory", "1Gi")), want: true},
		"there is not enough of one":     {charge: asking(limits("pods", "9", "cpu", "2"), creation("a", "a", "pods", "1", "cpu", "501m"))},
		"there is none of one":           {charge: asking(limits("pods", "9", "memory", "2Gi"), creation("a", "a", "pods", "1", "memory", "1Gi"))},
		"an update":                      {charge: asking(limits("pods", "9"), update("a", "a", "7", "x", "pods", "1"))},
		"a name for which others asked":  {charge: asking(limits("pods", "9"), creation("b", "taken", "pods", "1"))},
		"what is reserved already":       {charge: asking(limits("pods", "9"), taken)},
		"another replica's escrow":       {from: EscrowKey{Process: "you", Number: 1}, charge: asking(limits("pods", "9"), creation("a", "a", "pods", "1"))},
		"the limit is lower by now":      {charge: asking(limits("pods", "7"), creation("a", "a", "pods", "1"))},
		"a caller that has seen less":    {change: func(d *Draft) { d.state.Counted = versions{Namespaces: 9} }, charge: Charge{Limits: limits("pods", "9"), Reservation: creation("a", "a", "pods", "1")}},
		"a ledger that is not counted":   {change: func(d *Draft) { d.Forget(1) }, charge: asking(limits("pods", "9"), creation("a", "a", "pods", "1"))},
		"an escrow that is asked back":   {change: func(d *Draft) { d.Recall("you") }, charge: asking(limits("pods", "9"), creation("a", "a", "pods", "1"))},
		"a fence is lower than the spec": {change: func(d *Draft) { d.SetFence(Fence{Generation: 4, Hard: list("pods", "7")}) }, charge: asking(limits("pods", "9"), creation("a", "a", "pods", "1"))},
	} {
		t.Run(name, func(t *testing.T) {
			draft := Edit(state)
			if test.change != nil {
				test.change(draft)
			}
			from := held.EscrowKey
			if test.from != (EscrowKey{}) {
				from = test.from
			}
			before := draft.Charged()
			if _, got := draft.Spend(from, test.charge, true); got != test.want || !quota.Equals(before, draft.Charged()) {
				t.Errorf("probe: got %v, want %v; charged %v, was %v", got, test.want, draft.Charged(), before)
			}
			if _, got := draft.Spend(from, test.charge, false); got != test.want || !quota.Equals(before, draft.Charged()) {
				t.Errorf("got %v, want %v; charged %v, was %v", got, test.want, draft.Charged(), before)
			}
			if _, reserved := draft.State().Reservations[test.charge.Reservation.Key()]; test.want && !reserved {
				t.Error("want it reserved")
			}
		})
	}
}

func TestAffordable(t *testing.T) {
	for name, test := range map[string]struct {
		wanted, want corev1.ResourceList
		held         []Reservation
		escrow       Escrow
	}{
		"what is wanted":                   {wanted: list("pods", "3"), want: list("pods", "3")},
		"a quarter of what is free":        {wanted: list("pods", "100"), want: list("pods", "22")},
		"in thousandths of a CPU":          {wanted: list("cpu", "9"), want: list("cpu", "2250m")},
		"of all resources":                 {wanted: list("pods", "100", "cpu", "1"), want: list("pods", "22", "cpu", "1")},
		"less what others hold":            {wanted: list("pods", "100"), escrow: escrowOf("you", "pods", "15"), want: list("pods", "7")},
		"nothing if others hold that":      {wanted: list("pods", "1"), escrow: escrowOf("you", "pods", "22"), want: list()},
		"nothing of what isn't limited":    {wanted: list("secrets", "1"), want: list()},
		"nothing of what isn't counted":    {wanted: list("services", "1"), want: list()},
		"less what is reserved":            {wanted: list("pods", "100"), held: []Reservation{creation("a", "a", "pods", "50")}, want: list("pods", "10")},
		"nothing if more than all is used": {wanted: list("pods", "1"), held: []Reservation{creation("a", "a", "pods", "95")}, want: list()},
	} {
		t.Run(name, func(t *testing.T) {
			draft := Edit(counted("pods", "10", "cpu", "1").with(test.held...).holding(test.escrow))
			if got := draft.affordable(test.wanted, Limits{Hard: list("pods", "100", "cpu", "10", "services", "9")}, 4); !quota.Equals(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestEscrowsOfALedger(t *testing.T) {
	mine, yours := escrowOf("me", "pods", "2"), escrowOf("you", "pods", "3")
	state := counted("pods", "1").with(creation("a", "a", "pods", "1")).holding(mine, yours)
	if got := state.Indexed().index.escrowed; !quota.Equals(got, list("pods", "5")) {
		t.Errorf("escrowed: got %v", got)
	}
	if got := state.Reserved(); !quota.Equals(got, list("pods", "6")) {
		t.Errorf("got %v reserved, want escrows charged", got)
	}
	if got := EditWithoutEscrows(state).State().Reserved(); !quota.Equals(got, list("pods", "1")) {
		t.Errorf("without escrows: got %v", got)
	}
	draft := Edit(state)
	if !draft.Recall("me") || draft.Recall("me") {
		t.Error("want it asked back once")
	}
	foreign := draft.State().ForeignEscrows("me")
	if len(foreign) != 1 || foreign[0].Process != "you" || !foreign[0].Recalled || !quota.Equals(draft.Charged(), list("pods", "7")) {
		t.Errorf("got %v, %v charged; want the other's asked back, and charged", foreign, draft.Charged())
	}
	draft.Spent(mine.EscrowKey, []Reservation{creation("g", "g", "pods", "1")})
	if got := draft.Peek().Escrows[mine.EscrowKey]; !quota.Equals(got.Amounts, list("pods", "1")) {
		t.Errorf("shrunk: got %v", got.Amounts)
	}
	more := escrowOf("me", "pods", "9")
	draft.Bound(mine.EscrowKey, &more, nil)
	if got := draft.Peek().Escrows[mine.EscrowKey]; !quota.Equals(got.Amounts, list("pods", "1")) {
		t.Errorf("bound by more: got %v", got.Amounts)
	}
	draft.Bound(mine.EscrowKey, nil, nil)
	if got := draft.Peek().Escrows[mine.EscrowKey]; len(got.Amounts) > 0 {
		t.Errorf("bound by nothing: got %v", got.Amounts)
	}
	draft.Return(mine.EscrowKey)
	if got := draft.State().Indexed().index.escrowed; !quota.Equals(got, list("pods", "3")) || len(draft.State().Escrows) != 1 {
		t.Errorf("returned: got %v", got)
	}
}

// The escrow of a replica that is gone holds its room until all that it can have granted is counted.
func TestSettleEscrow(t *testing.T) {
	held := escrowOf("gone", "pods", "2", "claims", "1")
	state := counted("pods", "1", "claims", "0").holding(held).upTo(pods, 10).upTo(claims, 10).upTo(namespaceResource, 5)
	newest := versions{pods: 12, claims: 12, namespaceResource: 5}
	for name, test := range map[string]struct {
		upTo     versions
		newest   versions
		unlisted schema.GroupResource
		change   func(*Escrow)
		want     corev1.ResourceList
	}{
		"all is counted":              {upTo: versions{namespaceResource: 9, pods: 12, claims: 13}, newest: newest},
		"one source is behind":        {upTo: versions{namespaceResource: 9, pods: 11, claims: 13}, newest: newest, want: list("pods", "2")},
		"nothing is counted since":    {upTo: versions{namespaceResource: 9, pods: 10, claims: 10}, newest: newest, want: held.Amounts},
		"the count is behind":         {upTo: versions{namespaceResource: 4, pods: 20, claims: 20}, newest: newest, want: held.Amounts},
		"a source can't be listed":    {upTo: versions{namespaceResource: 9, pods: 20, claims: 20}, newest: newest, unlisted: claims, want: list("claims", "1")},
		"a source was not looked for": {upTo: versions{namespaceResource: 9, pods: 20, claims: 20}, newest: versions{pods: 12}, want: list("claims", "1")},
		"it was taken anew": {
			upTo: versions{namespaceResource: 9, pods: 12, claims: 13}, newest: newest, want: held.Amounts,
			change: func(e *Escrow) { e.Renewal++ },
		},
	} {
		t.Run(name, func(t *testing.T) {
			stored := held
			if test.change != nil {
				test.change(&stored)
			}
			state := state.holding(stored)
			state.Unlisted = sets.New(test.unlisted)
			draft := Edit(state)
			draft.SettleEscrow(held, count(list("pods", "3", "claims", "0"), test.upTo), Newest{Versions: test.newest})
			if got := draft.State().Indexed().index.escrowed; !quota.Equals(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestUnsettles(t *testing.T) {
	before := counted("pods", "1").upTo(namespaceResource, 5).upTo(pods, 7)
	for name, test := range map[string]struct {
		change func(*Draft)
		want   bool
	}{
		"amounts":              {change: func(d *Draft) { d.put(creation("a", "a", "pods", "1")); d.state.Used = list("pods", "2") }},
		"how far pods count":   {change: func(d *Draft) { d.state.Counted = versions{namespaceResource: 5, pods: 9} }},
		"a namespace":          {change: func(d *Draft) { d.state.Counted = versions{namespaceResource: 6, pods: 7} }, want: true},
		"a newer spec":         {change: func(d *Draft) { d.state.Generation++ }, want: true},
		"a fence":              {change: func(d *Draft) { d.SetFence(Fence{Generation: 4, Hard: list("pods", "1")}) }, want: true},
		"what is used is lost": {change: func(d *Draft) { d.Forget(1) }, want: true},
		"a seal":               {change: func(d *Draft) { d.state.Sealed = expiry }, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			draft := Edit(before)
			test.change(draft)
			if got := before.Unsettles(draft.Peek()); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestIsFarFrom(t *testing.T) {
	for name, test := range map[string]struct {
		used, after, hard    string
		advisory, far, frees bool
	}{
		"a little more":             {used: "1", after: "2", hard: "100", far: true},
		"a little less":             {used: "2", after: "1", hard: "100", far: true, frees: true},
		"it comes near":             {used: "70", after: "76", hard: "100"},
		"it was near":               {used: "76", after: "70", hard: "100", frees: true},
		"nothing is refused":        {used: "70", after: "176", hard: "100", advisory: true, far: true},
		"three quarters":            {used: "75", after: "75", hard: "100", far: true},
		"nothing is allowed at all": {used: "0", after: "0", hard: "0"},
	} {
		t.Run(name, func(t *testing.T) {
			state := counted("pods", test.used).upTo(pods, 5).upTo(namespaceResource, 5)
			observed := count(list("pods", test.after), versions{namespaceResource: 5, pods: 9})
			observed.Sources = map[corev1.ResourceName][]schema.GroupResource{"pods": {pods}}
			observed.Hard, observed.Advisory = list("pods", test.hard), test.advisory
			if weight := state.Weigh(observed); weight.Far != test.far || weight.Frees != test.frees {
				t.Errorf("got %v and %v, want %v and %v", weight.Far, weight.Frees, test.far, test.frees)
			}
			observed.Touched, observed.Joined = versions{namespaceResource: 7}, 7
			observed.Counted[namespaceResource] = 7
			if state.Weigh(observed).Far {
				t.Error("want a namespace that joined settled at once")
			}
		})
	}
}
