// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// in moves a reservation to a namespace.
func (r Reservation) in(namespace string) Reservation {
	r.Namespace = namespace
	return r
}

func keysOf(reservations []Reservation) (keys []Key) {
	for _, reservation := range reservations {
		keys = append(keys, reservation.Key())
	}
	return keys
}

// suspecting makes a namespace a suspect.
func (s State) suspecting(namespace string) State {
	s.Suspects = cloned(s.Suspects)
	s.Suspects[namespace] = Suspect{Object: Object{Namespace: namespace, UID: "suspect"}, Expiry: expiry}
	return s
}

// doubtful returns reservations of one pod each, whose requests seem to have failed.
func doubtful(namespace string, number int, amounts ...string) []Reservation {
	var all []Reservation
	for i := range number {
		name := fmt.Sprint("failed-", i)
		reservation := creation(types.UID(namespace+name), name, amounts...).in(namespace)
		reservation.Doubtful = true
		all = append(all, reservation)
	}
	return all
}

func TestANamespaceHoldsPartOfALimitForRequestsThatSeemToHaveFailed(t *testing.T) {
	withheld := func(name, requested, doubtful, limited string) Decision {
		return Withheld{Quota: "team", Requested: list(name, requested), Held: list(name, doubtful), Limited: list(name, limited)}
	}
	next := creation("next", "next", "pods", "1").in("a")
	for name, test := range map[string]struct {
		used, hard string
		held       []Reservation
		next       Reservation
		resource   string
		suspect    string
		want       Decision
	}{
		"a share of the limit":                 {used: "90", hard: "100", held: doubtful("a", 4, "pods", "1"), next: next, want: Granted{}},
		"and no more":                          {used: "90", hard: "100", held: doubtful("a", 5, "pods", "1"), next: next, want: withheld("pods", "1", "5", "5")},
		"others as before":                     {used: "90", hard: "100", held: doubtful("a", 5, "pods", "1"), next: next.in("b"), want: Granted{}},
		"the last one, too":                    {used: "94", hard: "100", held: doubtful("a", 5, "pods", "1"), next: next.in("b"), want: Granted{}},
		"another attempt at a name adds none":  {used: "90", hard: "100", held: doubtful("a", 5, "pods", "1"), next: creation("again", "failed-0", "pods", "1").in("a"), want: Granted{}},
		"a fifth of what would be free":        {used: "0", hard: "100", held: doubtful("a", 19, "pods", "1"), next: next, want: Granted{}},
		"and no more of that":                  {used: "0", hard: "100", held: doubtful("a", 20, "pods", "1"), next: next, want: withheld("pods", "1", "20", "20")},
		"one object of a small quota":          {used: "0", hard: "3", next: next, want: Granted{}},
		"and then no other":                    {used: "0", hard: "3", held: doubtful("a", 1, "pods", "1"), next: next, want: withheld("pods", "1", "1", "1")},
		"what isn't asked for doesn't matter":  {used: "90", hard: "100", held: doubtful("a", 5, "pods", "1"), next: creation("none", "none").in("a"), want: Granted{}},
		"what is only reserved isn't in doubt": {used: "0", hard: "3", held: []Reservation{creation("x", "x", "pods", "1").in("a")}, next: next, want: Granted{}},
		"what doesn't fit is denied as ever":   {used: "2", hard: "3", held: doubtful("a", 1, "pods", "1"), next: next, want: Denied{Quota: "team", Requested: list("pods", "1"), Used: list("pods", "3"), Limited: list("pods", "3")}},
		"CPUs count in thousandths":            {used: "0", hard: "1", held: doubtful("a", 1, "requests.cpu", "150m"), next: creation("n", "n", "requests.cpu", "51m").in("a"), resource: "requests.cpu", want: withheld("requests.cpu", "51m", "150m", "200m")},
		"newer requests of it count, too": {
			used: "90", hard: "100", next: next, want: withheld("pods", "1", "5", "5"),
			held: append(doubtful("a", 4, "pods", "1"), creation("young", "young", "pods", "1").in("a")),
		},
		"also if those have ended": {
			used: "90", hard: "100", next: next, want: withheld("pods", "1", "5", "5"),
			suspect: "a", held: []Reservation{creation("young", "young", "pods", "5").in("a")},
		},
		"those of others don't matter": {
			used: "90", hard: "100", next: next, want: Granted{},
			suspect: "b", held: []Reservation{creation("young", "young", "pods", "5").in("a")},
		},
		"several attempts count as the largest": {
			used: "90", hard: "100", next: next, want: Granted{},
			held: append(doubtful("a", 4, "pods", "1"), doubtful("a", 4, "pods", "1")[3].expiring(expiry)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			resource := test.resource
			if resource == "" {
				resource = "pods"
			}
			charge := asking(limits(resource, test.hard), test.next)
			charge.MaxDoubtful = 5
			state := counted(resource, test.used).with(test.held...)
			if test.suspect != "" {
				state = state.suspecting(test.suspect)
			}
			got := Edit(state).Reserve(charge)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("decision (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestAChargeIsTightIfItLeavesLittle(t *testing.T) {
	pod := func(name string) Reservation { return creation(types.UID(name), name, "pods", "1").in("a") }
	pods := func(namespace string, number int) (held []Reservation) {
		for i := range number {
			held = append(held, pod(strconv.Itoa(i)).in(namespace))
		}
		return held
	}
	for name, test := range map[string]struct {
		used string
		held []Reservation
		next Reservation
		// recent are the namespace's charges that aren't held yet.
		recent string
		want   bool
	}{
		"its namespace holds a tenth of what is free": {used: "20", held: pods("a", 7), next: pod("next"), want: false},
		"its namespace holds more":                    {used: "20", held: pods("a", 8), next: pod("next"), want: true},
		"another namespace holds more":                {used: "20", held: pods("b", 9), next: pod("next"), want: false},
		"it would hold more with what is recent":      {used: "20", held: pods("a", 4), next: pod("next"), recent: "4", want: true},
		"a fifth is left":                             {used: "79", next: pod("next"), want: false},
		"less than a fifth is":                        {used: "80", next: pod("next"), want: true},
		"what is reserved counts":                     {used: "79", held: []Reservation{pod("held")}, next: pod("next"), want: true},
		"the last one":                                {used: "99", next: pod("next"), want: true},
		"one too many":                                {used: "100", next: pod("next"), want: false},
		"its slot is in doubt":                        {used: "0", held: doubtful("a", 1, "pods", "1"), next: pod("failed-0"), want: true},
		"another slot is":                             {used: "0", held: doubtful("a", 1, "pods", "1"), next: pod("failed-1"), want: false},
		"what isn't limited is no limit":              {used: "99", next: creation("n", "n", "services", "1"), want: false},
	} {
		t.Run(name, func(t *testing.T) {
			state := counted("pods", test.used).with(test.held...)
			var recent corev1.ResourceList
			if test.recent != "" {
				recent = list("pods", test.recent)
			}
			for _, known := range []State{state, Edit(state).State()} {
				if got := known.IsTight(asking(limits("pods", "100"), test.next), recent); got != test.want {
					t.Errorf("got %t, want %t", got, test.want)
				}
			}
		})
	}
}

func TestADoubtIsKnownUntilItEnds(t *testing.T) {
	held := []Reservation{creation("x", "x", "pods", "1").in("a"), creation("y", "y", "pods", "2").in("a"), creation("z", "z", "pods", "4").in("b")}
	draft := Edit(counted("pods", "0").with(held...))
	for _, reservation := range []Reservation{held[0], held[1], creation("gone", "gone", "pods", "1")} {
		draft.Doubt(reservation.Key())
	}
	want := map[string]Doubts{"a": {Number: 2, Amounts: list("pods", "3")}}
	if diff := cmp.Diff(want, draft.State().Doubtful()); diff != "" || !draft.Changed() {
		t.Errorf("in doubt (-want,+got), changed %t:\n%s", draft.Changed(), diff)
	}
	again := Edit(draft.State())
	again.Doubt(held[0].Key())
	if again.Changed() {
		t.Error("what is doubtful already was written again")
	}
	again.Release(held[0].Key())
	again.Release(held[1].Key())
	if left := again.State().Doubtful(); len(left) > 0 {
		t.Errorf("got %v in doubt of reservations that have ended", left)
	}
}

func TestANamespaceThatHeldTooMuchStaysASuspect(t *testing.T) {
	until, hard := expiry.Add(time.Hour), list("pods", "100")
	held := slices.Concat(doubtful("a", 25, "pods", "1"), doubtful("b", 2, "pods", "1"),
		[]Reservation{creation("lost", "lost", "pods", "1").in("c")})
	draft := Edit(counted("pods", "0").with(held...))
	draft.DropAll(keysOf(held[:10]), hard, 5, until) // the first reservations have expired
	if left := len(draft.State().Reservations); left != 18 {
		t.Errorf("%d are in flight, want 18", left)
	}
	draft = Edit(draft.State())
	draft.DropAll(keysOf(held[10:]), hard, 5, until)
	state := draft.State()
	if len(state.Reservations) > 0 || len(state.Reserved()) > 0 || len(state.Doubtful()) > 0 {
		t.Errorf("got %v, and reserved %v", state.Reservations, state.Reserved())
	}
	suspect := state.Suspects["a"]
	if len(state.Suspects) != 1 || !suspect.Expiry.Equal(until) {
		t.Errorf("got %v", state.Suspects)
	}
	again, another := Edit(state), suspect
	another.UID = "another"
	again.Acquit(another)
	if again.Changed() || again.index.bytes == 0 {
		t.Error("the end of another suspicion ended this one")
	}
	again.Acquit(suspect)
	if !again.Changed() || len(again.State().Suspects) > 0 || again.index.bytes != 0 {
		t.Errorf("got %v after its time, of %d bytes", again.State().Suspects, again.index.bytes)
	}
}

// Grants of a batch count for the rest of it.
func TestASuspectedNamespaceIsChargedWithinABatch(t *testing.T) {
	draft := Edit(counted("pods", "0").with(doubtful("a", 1, "pods", "1")...))
	granted := 0
	for i := range 30 {
		name := fmt.Sprint("next-", i)
		charge := asking(limits("pods", "100"), creation(types.UID(name), name, "pods", "1").in("a"))
		if IsGranted(draft.Reserve(charge)) {
			granted++
		}
		draft.Reserve(charge) // again, as after a lost write
	}
	if granted != 19 {
		t.Errorf("granted %d besides the one in doubt, want 19", granted)
	}
	draft.Release(creation("next-3", "next-3").Key())
	if next := asking(limits("pods", "100"), creation("late", "late", "pods", "1").in("a")); !IsGranted(draft.Reserve(next)) {
		t.Error("refused what was released")
	}
}

// A decoded ledger has no index yet.
func TestDoubtsOfAnotherReplicaAreKnown(t *testing.T) {
	state := counted("pods", "0").with(doubtful("a", 2, "pods", "1")...)
	if diff := cmp.Diff(map[string]Doubts{"a": {Number: 2, Amounts: list("pods", "2")}}, state.Doubtful()); diff != "" {
		t.Errorf("in doubt (-want,+got):\n%s", diff)
	}
}
