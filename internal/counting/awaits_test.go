// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package counting

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// An object lives whose reservation has expired, and the count has yet to see it. Its
// namespace may leave and come back, and a limit may, and a replica may know either as it was.
func TestALedgerAwaitsAnObjectUntilItHasCountedThatItIsNoneOfItsOwn(t *testing.T) {
	counted := func(namespaces uint64) ledger.State {
		state := holding(list("configmaps", "0", "secrets", "0"))
		state.Counted = map[schema.GroupResource]uint64{ledger.Namespaces: namespaces, configMaps: 5, secrets: 5}
		return state
	}
	leaves := func(count *Count) { count.SetNamespace("a", nil, nil, 20, moment) }
	limitsSecrets := func(count *Count) { define(count, "secrets") }
	otherwise := func(state ledger.State) ledger.State {
		state.Digest = "another"
		return state
	}
	for name, test := range map[string]struct {
		change func(*Count)
		known  ledger.State
		want   bool
	}{
		"it is selected and limited":                            {known: counted(1), want: true},
		"its namespace has left, and the ledger knows":          {change: leaves, known: counted(20), want: false},
		"its namespace has left, and the ledger doesn't know":   {change: leaves, known: counted(19), want: true},
		"its namespace has left by an old view":                 {change: leaves, known: counted(21), want: true},
		"its namespace is gone":                                 {change: func(c *Count) { c.DeleteNamespace("a", 20) }, known: counted(20), want: false},
		"nothing of it is limited, and the ledger knows":        {change: limitsSecrets, known: counted(1), want: false},
		"nothing of it is limited, and the ledger doesn't know": {change: limitsSecrets, known: otherwise(counted(1)), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			count := newListed()
			mustReplace(count, configMaps, 5)
			mustReplace(count, secrets, 5)
			if test.change != nil {
				test.change(count)
			}
			reservation, got := held("uid"), false
			count.Read("team", func(view View) { got = Awaits(view, test.known, reservation) })
			if got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
