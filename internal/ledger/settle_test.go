// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

var (
	pods   = podResource.GroupResource()
	claims = claimResource.GroupResource()
)

// count is an Observation that includes every reservation's object.
func count(used corev1.ResourceList, upTo map[schema.GroupResource]uint64) Observation {
	return Observation{
		Basis: basis(), Used: used, Counted: upTo, Touched: versions{namespaceResource: upTo[namespaceResource]}, Joined: upTo[namespaceResource],
		Sources: map[corev1.ResourceName][]schema.GroupResource{
			"pods": {pods}, "claims": {claims}, "devices": {claims, pods},
		},
		Seen: func(Reservation) bool { return true },
	}
}

type versions = map[schema.GroupResource]uint64

func TestSettle(t *testing.T) {
	held := creation("a", "a", "pods", "1")
	everything := versions{namespaceResource: 10, pods: 10, claims: 10}
	before := counted("pods", "2", "claims", "1", "devices", "4").with(held).
		upTo(pods, 10).upTo(claims, 10).upTo(namespaceResource, 10)
	newer := list("pods", "3", "claims", "2", "devices", "5")

	for name, test := range map[string]struct {
		state   State
		count   func(*Observation)
		used    corev1.ResourceList
		counted versions
		kept    bool
	}{
		"a newer count takes over, and what it includes is no longer held": {
			state: before, used: newer, counted: everything,
		},
		"what it doesn't include stays held": {
			state: before, count: func(o *Observation) { o.Seen = func(Reservation) bool { return false } },
			used: newer, counted: everything, kept: true,
		},
		"a source that it has followed less far is left as it was": {
			state: before, count: func(o *Observation) { o.Counted[pods] = 9 },
			used: list("pods", "2", "claims", "2", "devices", "4"), counted: everything, kept: true,
		},
		"so is a source that it hasn't listed": {
			state: before, count: func(o *Observation) { delete(o.Counted, pods) },
			used: list("pods", "2", "claims", "2", "devices", "4"), counted: everything, kept: true,
		},
		"of such a source nothing is known where a namespace joined": {
			state: before, count: func(o *Observation) {
				o.Counted[pods], o.Counted[namespaceResource], o.Touched[namespaceResource], o.Joined = 9, 11, 11, 11
			},
			used: list("claims", "2"), counted: versions{namespaceResource: 11, pods: 10, claims: 10}, kept: true,
		},
		"where one left, at most what was known is used": {
			state: before, count: func(o *Observation) {
				o.Counted[pods], o.Counted[namespaceResource], o.Touched[namespaceResource] = 9, 11, 11
			},
			used: list("pods", "2", "claims", "2", "devices", "4"), counted: versions{namespaceResource: 11, pods: 10, claims: 10}, kept: true,
		},
		"nor of one that it hasn't listed": {
			state: before, count: func(o *Observation) {
				o.Counted[namespaceResource], o.Touched[namespaceResource], o.Joined = 11, 11, 11
				delete(o.Counted, pods)
			},
			used: list("claims", "2"), counted: versions{namespaceResource: 11, pods: 10, claims: 10}, kept: true,
		},
		"namespaces that changed without a quota to mind are nothing new": {
			state: before, count: func(o *Observation) { o.Counted[namespaceResource] = 11; delete(o.Counted, pods) },
			used: list("pods", "2", "claims", "2", "devices", "4"), counted: everything, kept: true,
		},
		"without the newest namespaces nothing is new": {
			state: before, count: func(o *Observation) { o.Counted[namespaceResource] = 9 },
			used: before.Used, counted: everything, kept: true,
		},
		"nor without any namespaces": {
			state: before, count: func(o *Observation) { delete(o.Counted, namespaceResource) },
			used: before.Used, counted: everything, kept: true,
		},
		"how far a count has come is remembered": {
			state: before, count: func(o *Observation) { o.Counted[pods], o.Counted[claims] = 30, 20 },
			used: newer, counted: versions{namespaceResource: 10, pods: 30, claims: 20},
		},
		"a count of an older spec is ignored": {
			state: before, count: func(o *Observation) { o.Generation--; o.Digest = "before" },
			used: before.Used, counted: everything, kept: true,
		},
		"a spec that counts otherwise takes what has been listed for it, and nothing over": {
			state: before, count: func(o *Observation) { o.Generation, o.Digest = 4, "after"; delete(o.Counted, claims) },
			used: list("pods", "3"), counted: everything,
		},
		"the same count for a newer spec holds": {
			state: before, count: func(o *Observation) { o.Generation = 4; delete(o.Counted, claims) },
			used: list("pods", "3", "claims", "1", "devices", "4"), counted: everything,
		},
		"a first count is taken as it is": {
			state: State{}.with(held), used: newer, counted: everything,
		},
		"a first count leaves out what hasn't been listed": {
			state: State{}.with(held), count: func(o *Observation) { delete(o.Counted, claims) },
			used: list("pods", "3"), counted: versions{namespaceResource: 10, pods: 10},
		},
		"what is no longer limited is no longer used": {
			state: before, count: func(o *Observation) {
				o.Generation, o.Digest = 4, "after"
				o.Sources = map[corev1.ResourceName][]schema.GroupResource{"pods": {pods}}
			},
			used: list("pods", "3"), counted: versions{namespaceResource: 10, pods: 10},
		},
	} {
		t.Run(name, func(t *testing.T) {
			observed := count(newer, maps.Clone(everything))
			if test.count != nil {
				test.count(&observed)
			}
			draft := Edit(test.state)
			draft.Settle(observed)
			got := draft.State()
			if diff := cmp.Diff(test.used, got.Used); diff != "" {
				t.Errorf("used (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(test.counted, got.Counted); diff != "" {
				t.Errorf("counted (-want,+got):\n%s", diff)
			}
			if _, kept := got.Reservations[held.Key()]; kept != test.kept {
				t.Errorf("reservation kept: got %v, want %v", kept, test.kept)
			}
		})
	}
}

// A pod is counted and so are its devices, but the use of devices waits for the
// claims: without the reservation nothing would cover the pod's.
func TestAReservationStaysUntilAllOfItIsUsed(t *testing.T) {
	for name, test := range map[string]struct {
		late func(versions)
		held Reservation
		kept bool
	}{
		"claims haven't been listed": {
			late: func(counted versions) { delete(counted, claims) }, held: creation("a", "a", "pods", "1", "devices", "2"), kept: true,
		},
		"claims are older than what has been counted": {
			late: func(counted versions) { counted[claims] = 9 }, held: creation("a", "a", "pods", "1", "devices", "2"), kept: true,
		},
		"claims are late, and the pod uses none of their devices": {
			late: func(counted versions) { counted[claims] = 9 }, held: creation("a", "a", "pods", "1"),
		},
		"claims are as new as the pods": {
			late: func(versions) {}, held: creation("a", "a", "pods", "1", "devices", "2"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			upTo := versions{namespaceResource: 10, pods: 10, claims: 10}
			state := counted("pods", "0", "claims", "0", "devices", "0").with(test.held).
				upTo(pods, 10).upTo(claims, 10).upTo(namespaceResource, 10)
			test.late(upTo)
			draft := Edit(state)
			draft.Settle(count(list("pods", "1", "claims", "0", "devices", "2"), upTo))
			if _, kept := draft.State().Reservations[test.held.Key()]; kept != test.kept {
				t.Errorf("reservation kept: got %v, want %v", kept, test.kept)
			}
			want := corev1.ResourceList{"devices": test.held.Amounts["devices"]}
			charged := corev1.ResourceList{"devices": draft.Charged()["devices"]}
			if _, uses := test.held.Amounts["devices"]; uses {
				if diff := cmp.Diff(want, charged); diff != "" {
					t.Errorf("charged (-want,+got):\n%s", diff)
				}
			}
		})
	}
}

// A count for a quota that had the name before, from a process that is behind,
// must not make the ledger forget how far the quota of today was counted.
func TestAnotherQuotasCountDoesNotLetAnOldViewIn(t *testing.T) {
	state := counted("pods", "5", "claims", "0", "devices", "0").
		upTo(pods, 100).upTo(claims, 100).upTo(namespaceResource, 100)
	draft := Edit(state)

	ofTheQuotaBefore := count(list("pods", "3"), versions{namespaceResource: 100, pods: 50, claims: 100})
	ofTheQuotaBefore.Basis = Basis{Quota: "before", Generation: 8, Digest: "before"}
	draft.Settle(ofTheQuotaBefore)
	draft.Settle(count(list("pods", "4"), versions{namespaceResource: 100, pods: 60, claims: 100}))

	used, counted := draft.State().Used["pods"]
	if counted && used.Value() < 5 {
		t.Errorf("used: got %s pods as of version 60, want 5 or none: it had been counted up to version 100", used.String())
	}
}

func TestASettleIsWrittenOnlyWhenItSaysMore(t *testing.T) {
	held := creation("a", "a", "pods", "1")
	for name, test := range map[string]struct {
		count func(*Observation)
		held  []Reservation
		want  bool
	}{
		"nothing is new":                 {count: func(*Observation) {}},
		"only how far it has come":       {count: func(o *Observation) { o.Counted[pods] = 99 }},
		"the same amount in other words": {count: func(o *Observation) { o.Used["pods"] = list("p", "2000m")["p"] }},
		"more is used":                   {count: func(o *Observation) { o.Used["pods"] = list("p", "3")["p"] }, want: true},
		"something more is limited": {count: func(o *Observation) {
			o.Sources["new"] = []schema.GroupResource{pods}
			o.Used["new"] = list("p", "0")["p"]
		}, want: true},
		"a newer spec was counted":            {count: func(o *Observation) { o.Generation++ }, want: true},
		"an object has been observed":         {count: func(*Observation) {}, held: []Reservation{held}, want: true},
		"an object has not been observed yet": {count: func(o *Observation) { o.Seen = func(Reservation) bool { return false } }, held: []Reservation{held}},
	} {
		t.Run(name, func(t *testing.T) {
			state := counted("pods", "2", "claims", "0", "devices", "0").with(test.held...).upTo(pods, 10).upTo(namespaceResource, 10)
			observed := count(list("pods", "2", "claims", "0", "devices", "0"), versions{namespaceResource: 10, pods: 10, claims: 10})
			test.count(&observed)
			draft := Edit(state)
			draft.Settle(observed)
			if draft.Changed() != test.want {
				t.Errorf("changed: got %v, want %v", draft.Changed(), test.want)
			}
		})
	}
}

// A source that can't be listed keeps nothing from being granted that is counted from others.
func TestASourceThatCanNotBeListed(t *testing.T) {
	draft := Edit(counted("pods", "0", "claims", "0"))
	draft.Forget(1)
	draft.Require(1, Newest{Versions: versions{pods: 15, namespaceResource: 12}, Unlisted: sets.New(claims)})
	if got := draft.State().Unlisted; len(got) != 1 || !got.Has(claims) {
		t.Errorf("unlisted: got %v", got)
	}
	current := count(list("pods", "1", "claims", "1"), versions{namespaceResource: 20, pods: 20, claims: 20})
	draft.Settle(current)
	if got := draft.Reserve(asking(limits("pods", "4", "claims", "4"), creation("p", "p", "pods", "1"))); !IsGranted(got) {
		t.Errorf("pods: got %v, want it granted", got)
	}
	claim := asking(limits("pods", "4", "claims", "4"), creation("c", "c", "claims", "1"))
	if got, ok := draft.Reserve(claim).(Undecided); !ok || got.Reason != NotCounted {
		t.Errorf("claims: got %v, want it not counted", got)
	}

	draft = Edit(draft.State())
	draft.Listed(Newest{Versions: versions{pods: 99}, Unlisted: sets.New(claims)})
	if draft.Changed() {
		t.Error("want nothing changed while it can't be listed")
	}
	draft.Listed(Newest{Versions: versions{claims: 21}})
	draft.Settle(current)
	if _, counted := draft.State().Used["claims"]; counted {
		t.Error("want a count ignored that may lack what was stored before")
	}
	current = count(list("pods", "1", "claims", "2"), versions{namespaceResource: 22, pods: 22, claims: 22})
	draft.Settle(current)
	if got := draft.Reserve(claim); !IsGranted(got) || len(draft.State().Unlisted) != 0 {
		t.Errorf("claims: got %v, want it granted once it is counted", got)
	}
}

// Nothing is granted on a use from before objects were stored without a request,
// and nothing in flight is forgotten.
func TestForget(t *testing.T) {
	held, asked := creation("a", "a", "pods", "1"), creation("b", "b", "pods", "1")
	draft := Edit(counted("pods", "0").with(held).upTo(pods, 10))
	draft.Forget(1)
	if !draft.Changed() {
		t.Error("want it stored")
	}
	wantNotCounted := func(when string, draft *Draft) {
		t.Helper()
		decision := draft.Reserve(asking(limits("pods", "4"), asked))
		want := Undecided{Quota: "team", Reason: NotCounted, Resources: []corev1.ResourceName{"pods"}}
		if diff := cmp.Diff(Decision(want), decision); diff != "" {
			t.Errorf("%s (-want,+got):\n%s", when, diff)
		}
	}
	wantNotCounted("before the count", draft)
	every := count(list("pods", "1"), versions{namespaceResource: 20, pods: 20, claims: 20})
	again := Edit(draft.State())
	again.Settle(every)
	if again.Changed() {
		t.Error("want no count settled before it is known how far it must have come")
	}
	wantNotCounted("before it is known how far a count must have come", again)

	mark := draft.State().Forgotten
	later := Edit(draft.State())
	later.Forget(2)
	later = Edit(later.State())
	later.Require(mark, Newest{Versions: versions{pods: 15, namespaceResource: 12}})
	if later.Changed() {
		t.Error("want what was demanded before use was forgotten again not to do")
	}
	again = Edit(draft.State())
	again.Require(mark, Newest{Versions: versions{pods: 15, namespaceResource: 12}})
	if !again.Changed() || again.State().Forgotten != 0 {
		t.Error("want the demand stored")
	}
	wantNotCounted("after the demand", again)

	older := count(list("pods", "1"), versions{namespaceResource: 20, pods: 14, claims: 20})
	again.Settle(older)
	if _, counted := again.State().Used["pods"]; counted {
		t.Error("want a count ignored that may lack what was stored meanwhile")
	}
	again = Edit(again.State())
	seen := count(list("pods", "3"), versions{namespaceResource: 20, pods: 20, claims: 20})
	seen.Seen = func(Reservation) bool { return false }
	if again.State().Weigh(seen).Waits {
		t.Error("want the count at once")
	}
	again.Settle(seen)
	if _, denied := again.Reserve(asking(limits("pods", "4"), asked)).(Denied); !denied {
		t.Error("want 3 used and 1 in flight to leave no room of 4")
	}
}

func TestWaits(t *testing.T) {
	held := creation("a", "a", "pods", "1")
	for name, test := range map[string]struct {
		count func(*Observation)
		want  bool
	}{
		"nothing is new":            {count: func(o *Observation) { o.Seen = func(Reservation) bool { return false } }, want: true},
		"what was reserved is used": {count: func(o *Observation) { o.Used["pods"] = list("p", "3")["p"] }, want: true},
		"more is used, of a namespace that joined or of objects that were stored without a request": {count: func(o *Observation) {
			o.Used["pods"] = list("p", "4")["p"]
		}},
		"what was reserved came and went": {count: func(*Observation) {}},
		"one went, and another has yet to be seen": {count: func(o *Observation) {
			o.Used["pods"] = list("p", "1")["p"]
			o.Seen = func(Reservation) bool { return false }
		}},
		"less is used of one and more of another": {count: func(o *Observation) {
			o.Used["pods"], o.Used["claims"] = list("p", "9")["p"], list("c", "0")["c"]
		}},
		"a newer spec was counted": {count: func(o *Observation) {
			o.Generation++
			o.Used["pods"] = list("p", "3")["p"]
		}},
		"an empty namespace joined": {count: func(o *Observation) {
			o.Used["pods"] = list("p", "3")["p"]
			o.Counted[namespaceResource], o.Touched[namespaceResource], o.Joined = 11, 11, 11
		}},
		"one object went, and one of the same size came": {count: func(o *Observation) {
			o.Used["pods"] = list("p", "3")["p"]
			o.Counted[pods], o.Touched[pods] = 12, 12
		}, want: true},
		"the count is older than the ledger": {count: func(o *Observation) {
			o.Counted[pods] = 9
			o.Used["pods"] = list("p", "0")["p"]
		}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			state := counted("pods", "2", "claims", "1", "devices", "0").with(held).upTo(pods, 10).upTo(namespaceResource, 10)
			observed := count(list("pods", "2", "claims", "1", "devices", "0"), versions{namespaceResource: 10, pods: 10, claims: 10})
			test.count(&observed)
			if got := state.Weigh(observed).Waits; got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestASettleIsBlankWhileNothingIsCounted(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*State, *Observation)
		want   bool
	}{
		"nothing is listed yet": {change: func(*State, *Observation) {}, want: true},
		"one resource is listed": {change: func(_ *State, o *Observation) {
			o.Used, o.Counted[pods] = list("pods", "0"), 10
		}},
		"the ledger has an amount": {change: func(s *State, _ *Observation) { s.Used = list("pods", "1") }},
		"a fence waits for it":     {change: func(s *State, _ *Observation) { s.Fence.Generation = 1 }},
		"nothing is refused":       {change: func(_ *State, o *Observation) { o.Advisory = true }},
		"nothing is limited":       {change: func(_ *State, o *Observation) { o.Sources = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			state, observed := State{Basis: Basis{Quota: basis().Quota}}, count(nil, versions{namespaceResource: 10})
			test.change(&state, &observed)
			if weight := state.Weigh(observed); !weight.Changes || weight.Blank != test.want {
				t.Errorf("got %+v, want a change, and Blank %v", weight, test.want)
			}
		})
	}
}

// A pod went and another of its size came without a request: the sum is the same,
// and a view from between the two would count one pod less.
func TestACountOfTheSameSumIsStoredIfAnOlderViewDiffers(t *testing.T) {
	before := counted("pods", "1").upTo(pods, 10).upTo(namespaceResource, 10)
	after := count(list("pods", "1"), versions{namespaceResource: 10, pods: 30})
	after.Sources = map[corev1.ResourceName][]schema.GroupResource{"pods": {pods}}
	after.Touched[pods] = 25
	draft := Edit(before)
	draft.Settle(after)
	if !draft.Changed() {
		t.Fatal("want it stored how far the count has come")
	}
	between := after
	between.Used, between.Counted = list("pods", "0"), versions{namespaceResource: 10, pods: 20}
	between.Touched = versions{namespaceResource: 10, pods: 18}
	again := Edit(draft.State())
	again.Settle(between)
	if diff := cmp.Diff(list("pods", "1"), again.State().Used); diff != "" {
		t.Errorf("a new leader that has seen less settled too low (-want,+got):\n%s", diff)
	}
}

func TestACountWithNothingNewIsNotStored(t *testing.T) {
	state := counted("pods", "1").upTo(pods, 10).upTo(namespaceResource, 10)
	bookmark := count(list("pods", "1"), versions{namespaceResource: 90, pods: 90})
	bookmark.Sources = map[corev1.ResourceName][]schema.GroupResource{"pods": {pods}}
	bookmark.Touched = versions{namespaceResource: 10, pods: 10}
	draft := Edit(state)
	draft.Settle(bookmark)
	if draft.Changed() {
		t.Error("want no write for a bookmark")
	}
	if got := draft.State().Counted[namespaceResource]; got != 10 {
		t.Errorf("namespaces are counted up to %d, want 10: callers may not have seen more", got)
	}
}

// A pod with a device is counted as a pod although device claims can't be listed.
func TestAReservationKeepsWhatOtherSourcesAreStillCountedFor(t *testing.T) {
	held := creation("a", "a", "pods", "1", "devices", "2")
	observed := count(list("pods", "1", "claims", "0", "devices", "2"), versions{namespaceResource: 10, pods: 10})
	draft := Edit(counted("pods", "0").with(held))
	draft.Settle(observed)
	if diff := cmp.Diff(list("devices", "2"), draft.State().Reserved()); diff != "" {
		t.Errorf("reserved (-want,+got):\n%s", diff)
	}
	if !draft.Changed() {
		t.Error("want it stored")
	}
	draft = Edit(draft.State())
	observed.Counted = versions{namespaceResource: 10, pods: 10, claims: 10}
	draft.Settle(observed)
	if ends := draft.Ends(); ends.Settled != 1 || len(draft.State().Reservations) != 0 {
		t.Errorf("want it settled once claims are counted, got %+v", ends)
	}
}
