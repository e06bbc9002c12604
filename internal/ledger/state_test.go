// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestADraftLeavesItsStateAlone(t *testing.T) {
	fresh := func() State {
		return counted("pods", "1", "cpu", "2").
			with(creation("a", "a", "pods", "1"), creation("b", "b", "pods", "1", "cpu", "1"), update("c", "c", "5", "1", "cpu", "1")).
			upTo(pods, 7)
	}
	for name, change := range map[string]func(*Draft){
		"by a grant":   func(d *Draft) { d.Reserve(asking(limits("pods", "9"), creation("d", "d", "pods", "1"))) },
		"by a retry":   func(d *Draft) { d.Reserve(asking(limits("pods", "9"), creation("a", "a", "pods", "5"))) },
		"by a denial":  func(d *Draft) { d.Reserve(asking(limits("pods", "1"), creation("d", "d", "pods", "1"))) },
		"by a release": func(d *Draft) { d.Release(Key{UID: "b"}) },
		"by a drop":    func(d *Draft) { d.Drop(creation("a", "a").Key()) },
		"by a settle": func(d *Draft) {
			d.Settle(count(list("pods", "4"), versions{namespaceResource: 9, pods: 9, claims: 9}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			state := fresh()
			change(Edit(state))
			if diff := gocmp.Diff(fresh(), state, cmpopts.IgnoreUnexported(State{})); diff != "" {
				t.Errorf("the state was changed (-before,+after):\n%s", diff)
			}
		})
	}
}

func TestDraftsOfOneStateAreApart(t *testing.T) {
	// An index to share, as a state has that a draft made.
	state := Edit(counted("pods", "0").with(creation("a", "a", "pods", "1"))).State()
	one, other := Edit(state), Edit(state)
	one.Reserve(asking(limits("pods", "9"), creation("b", "b", "pods", "1")))
	other.Release(Key{UID: "a"})
	if diff := gocmp.Diff(list("pods", "2"), one.State().Reserved()); diff != "" {
		t.Errorf("reserved in the one (-want,+got):\n%s", diff)
	}
	if diff := gocmp.Diff(list(), other.State().Reserved()); diff != "" {
		t.Errorf("reserved in the other (-want,+got):\n%s", diff)
	}
}

func TestDrop(t *testing.T) {
	held := creation("a", "a", "pods", "1")
	for name, test := range map[string]struct {
		state   State
		changed bool
	}{
		"one that is as it was looked at goes": {state: counted("pods", "0").with(held), changed: true},
		"one that has settled since is gone":   {state: counted("pods", "0")},
		"another attempt isn't meant":          {state: counted("pods", "0").with(update("a", "a", "7", "1", "pods", "1"))},
	} {
		t.Run(name, func(t *testing.T) {
			draft := Edit(test.state)
			draft.Drop(held.Key())
			if draft.Changed() != test.changed {
				t.Errorf("changed: got %v, want %v", draft.Changed(), test.changed)
			}
			if _, kept := draft.State().Reservations[held.Key()]; kept && test.changed {
				t.Error("it is still held")
			}
		})
	}
}

func TestChargedIsUsedAndReserved(t *testing.T) {
	draft := Edit(counted("pods", "1", "cpu", "500m").with(
		creation("a", "a", "pods", "1", "cpu", "250m"), update("b", "b", "3", "1", "cpu", "250m")))
	if diff := gocmp.Diff(list("pods", "2", "cpu", "1"), draft.Charged()); diff != "" {
		t.Errorf("charged (-want,+got):\n%s", diff)
	}
}
