// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
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
		"who knows nothing is told what to look for":                   {want: undecided(StaleNamespaces, 10)},
		"who has not seen the newest change may be asked of another's": {caller: Knowledge{Namespace: 5, Seen: 9}, want: undecided(StaleNamespaces, 10)},
		"who has seen it is answered":                                  {caller: Knowledge{Namespace: 5, Seen: 10}, want: Granted{}},
		"who has seen more is answered":                                {caller: Knowledge{Namespace: 10, Seen: 99}, want: Granted{}},
		"a namespace that changed since is not counted yet":            {caller: Knowledge{Namespace: 11, Seen: 99}, want: undecided(NotJoined, 0)},
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
