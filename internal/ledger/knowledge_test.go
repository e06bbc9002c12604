// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAChargeAndALedgerMustKnowTheSameOfNamespaces(t *testing.T) {
	state := counted("pods", "0").upTo(Namespaces, 10)
	undecided := func(reason Reason, members uint64) Decision {
		return Undecided{Quota: "team", Reason: reason, Resources: []corev1.ResourceName{"pods"}, Members: members}
	}
	for name, test := range map[string]struct {
		caller Knowledge
		want   Decision
	}{
		"a caller that knows nothing learns the version to look for":             {want: undecided(StaleNamespaces, 10)},
		"a caller that has not seen the newest change may be asked of another's": {caller: Knowledge{Joined: 5, Seen: 9}, want: undecided(StaleNamespaces, 10)},
		"a caller that has seen it is answered":                                  {caller: Knowledge{Joined: 5, Seen: 10}, want: Granted{}},
		"a caller that has seen more is answered":                                {caller: Knowledge{Joined: 10, Seen: 99}, want: Granted{}},
		"a namespace that joined since is not counted yet":                       {caller: Knowledge{Joined: 11, Seen: 99}, want: undecided(NotJoined, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			charge := asking(limits("pods", "1"), creation("a", "a", "pods", "1"))
			charge.Knowledge = test.caller
			if diff := cmp.Diff(test.want, Edit(state).Reserve(charge)); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

// The version up to which all joins are counted is raised in writes that happen anyway, and in another write only if a
// caller asks for it.
func TestJoinedIsRaised(t *testing.T) {
	before := counted("pods", "0").upTo(Namespaces, 10)
	before.Joined = 20
	asked := before
	asked.Asked = 30
	charges := func(knowledge Knowledge) func(*Draft) {
		return func(draft *Draft) {
			charge := asking(limits("pods", "1"), creation("a", "a", "pods", "1"))
			charge.Knowledge = knowledge
			draft.Reserve(charge)
		}
	}
	settles := func(digest string, members uint64) func(*Draft) {
		return func(draft *Draft) {
			settled := count(list("pods", "0"), map[schema.GroupResource]uint64{pods: 40, Namespaces: 40})
			settled.Digest, settled.Touched, settled.Joined, settled.Members = digest, nil, 10, members
			draft.Settle(settled)
		}
	}
	for name, test := range map[string]struct {
		from          State
		do            func(*Draft)
		joined, asked uint64
		changed       bool
	}{
		"by who has seen nobody join since":            {from: before, do: charges(Knowledge{Joined: 20, All: 50, Seen: 60}), joined: 50, changed: true},
		"not by who has":                               {from: before, do: charges(Knowledge{Joined: 21, All: 50, Seen: 60}), joined: 20},
		"but that asks, if it has waited":              {from: before, do: charges(Knowledge{Joined: 25, All: 50, Seen: 60, Asks: true}), joined: 20, asked: 25, changed: true},
		"once":                                         {from: asked, do: charges(Knowledge{Joined: 25, All: 50, Seen: 60, Asks: true}), joined: 20, asked: 30},
		"by a count, which isn't written for that":     {from: before, do: settles(before.Digest, 40), joined: 40},
		"by a count that was asked for":                {from: asked, do: settles(before.Digest, 40), joined: 40, changed: true},
		"not by a count that was asked for and is old": {from: asked, do: settles(before.Digest, 15), joined: 20, asked: 30},
		"by a count of another selector, from nothing": {from: before, do: settles("other", 15), joined: 15, changed: true},
		"by no charge, once use is forgotten":          {from: before, do: func(draft *Draft) { draft.Forget(1) }, changed: true},
	} {
		t.Run(name, func(t *testing.T) {
			draft := Edit(test.from)
			test.do(draft)
			if got := draft.State(); got.Joined != test.joined || got.Asked != test.asked || draft.Changed() != test.changed {
				t.Errorf("got joined %d, asked %d, changed %t, want %d, %d, %t", got.Joined, got.Asked, draft.Changed(), test.joined, test.asked, test.changed)
			}
		})
	}
}
