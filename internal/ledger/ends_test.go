// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReservationsEnd(t *testing.T) {
	held := creation("a", "a", "pods", "1")
	observed := count(list("pods", "3", "claims", "0", "devices", "0"), versions{namespaceResource: 10, pods: 10, claims: 10})
	for name, test := range map[string]struct {
		end  func(*Draft)
		want Ends
	}{
		"when their object is observed":  {end: func(d *Draft) { d.Settle(observed) }, want: Ends{Settled: 1}},
		"when it never came":             {end: func(d *Draft) { d.Drop(held.Key()) }, want: Ends{Expired: 1}},
		"when their request was refused": {end: func(d *Draft) { d.Release(held.Key()) }, want: Ends{Released: 1}},
		"only once":                      {end: func(d *Draft) { d.Release(held.Key()); d.Drop(held.Key()); d.Settle(observed) }, want: Ends{Released: 1}},
		"but not when another takes their place": {end: func(d *Draft) {
			d.Reserve(asking(Limits{Basis: observed.Basis, Name: "team", Hard: list("pods", "9")}, held))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			draft := Edit(counted("pods", "2", "claims", "0", "devices", "0").with(held).upTo(pods, 10))
			test.end(draft)
			if diff := cmp.Diff(test.want, draft.Ends()); diff != "" {
				t.Errorf("ends (-want,+got):\n%s", diff)
			}
		})
	}
}
