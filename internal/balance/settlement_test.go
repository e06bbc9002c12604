/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package balance

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

var shop = map[string]string{"team": "shop"}

// joining is a count of namespace a, which a ledger has counted, and namespace b, which
// joined at version 10.
func joining() *counting.Count {
	count := newCount()
	mustReplace(count, configMaps, 5)
	mustReplace(count, secrets, 5)
	count.SetNamespace("b", shop, nil, 10, moment)
	return count
}

// proves is a look at what a namespace brought: a config map of this version, and no secret.
func proves(count *counting.Count, namespace string, joined, version uint64) {
	count.Prove("team", counting.Joined{Namespace: namespace, Version: joined},
		map[schema.GroupResource]uint64{configMaps: version, secrets: 0})
}

// Requests in a namespace are judged by a ledger that has counted what it brought.
func TestALedgerSettlesBeforeANamespaceOfWhichMoreIsToCome(t *testing.T) {
	const waits = 1000 // instead of a version
	for name, test := range map[string]struct {
		change func(*counting.Count)
		known  func(*ledger.State)
		want   uint64
	}{
		"nobody has looked":             {want: 1},
		"the ledger has counted it":     {known: func(known *ledger.State) { known.Counted[ledger.Namespaces] = 10 }, want: 10},
		"the count has all it brought":  {change: func(c *counting.Count) { proves(c, "b", 10, 5) }, want: 10},
		"it brought nothing":            {change: func(c *counting.Count) { proves(c, "b", 10, 0) }, want: 10},
		"more is to come":               {change: func(c *counting.Count) { proves(c, "b", 10, 6) }, want: 1},
		"it came":                       {change: func(c *counting.Count) { proves(c, "b", 10, 6); c.Source(configMaps).At(6) }, want: 10},
		"the look was for another join": {change: func(c *counting.Count) { proves(c, "b", 9, 5) }, want: 1},
		"what it brought isn't served any more": {
			change: func(c *counting.Count) { proves(c, "b", 10, 6); c.DropSource(configMaps) }, want: 10,
		},
		"another one joined, and is proved": {
			change: func(c *counting.Count) { c.SetNamespace("c", shop, nil, 11, moment); proves(c, "c", 11, 5) }, want: 1,
		},
		"another one joined before, and is proved": {
			change: func(c *counting.Count) {
				c.SetNamespace("c", shop, nil, 20, moment)
				proves(c, "b", 10, 5)
				c.SetNamespace("d", shop, nil, 30, moment)
			}, want: 10,
		},
		"it left":                 {change: func(c *counting.Count) { c.SetNamespace("b", nil, nil, 11, moment) }, want: 11},
		"another one left since":  {change: func(c *counting.Count) { c.SetNamespace("a", nil, nil, 11, moment) }, want: waits},
		"another one is deleted":  {change: func(c *counting.Count) { c.DeleteNamespace("a", 11) }, want: waits},
		"another one has changed": {change: func(c *counting.Count) { c.SetNamespace("a", shop, nil, 11, moment) }, want: 1},
		"another one has changed unseen": {
			change: func(c *counting.Count) {
				proves(c, "b", 10, 5)
				c.ReplaceNamespaces([]counting.NamespaceLabels{
					{Name: "b", Labels: shop, Version: 10}, {Name: "a", Labels: shop, Version: 12},
				}, 12, moment)
			}, want: 10,
		},
		"it is audited": {
			change: func(c *counting.Count) { proves(c, "b", 10, 6); c.Audit("team", moment); c.Source(configMaps).At(6) }, want: 10,
		},
		"another one is audited that left and is back": {
			change: func(c *counting.Count) { proves(c, "b", 10, 5); c.Audit("team", moment) }, want: 10,
		},
		"the quota counts something else than the ledger": {known: func(known *ledger.State) { known.Digest = "another" }, want: waits},
		"the ledger is another quota's":                   {known: func(known *ledger.State) { known.Quota = "another" }, want: waits},
		"what is used is forgotten": {
			known: func(known *ledger.State) {
				draft := ledger.Edit(*known)
				draft.Forget(moment)
				*known = draft.State()
			}, want: 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			count, known := joining(), holding(list("configmaps", "0", "secrets", "0"))
			known.Counted = map[schema.GroupResource]uint64{ledger.Namespaces: 1, configMaps: 5, secrets: 5}
			if test.change != nil {
				test.change(count)
			}
			if test.known != nil {
				test.known(&known)
			}
			got := uint64(waits)
			count.Read("team", func(view counting.View) {
				if settlement := SettlementOf(view, known); settlement != nil {
					got = settlement.Touched[ledger.Namespaces]
				}
			})
			if got != test.want {
				t.Errorf("namespaces count up to version %d, want %d (%d is for not at all)", got, test.want, waits)
			}
		})
	}
}

// What a ledger has counted once needs no proof, whoever counted it.
func TestOnlyWhatTheLedgerHasNotCountedIsLookedAt(t *testing.T) {
	count, known := joining(), holding(corev1.ResourceList{})
	known.Counted = map[schema.GroupResource]uint64{ledger.Namespaces: 1}
	joins := func() (joins []counting.Joined) {
		count.Read("team", func(view counting.View) { joins = Unproved(view, known) })
		return joins
	}
	if got := joins(); len(got) != 1 || got[0] != (counting.Joined{Namespace: "b", Version: 10, Before: 1}) {
		t.Errorf("got %v, want that of namespace b", got)
	}
	proves(count, "b", 10, 6)
	if got := joins(); len(got) != 1 || !got[0].Seen {
		t.Errorf("got %v, want it seen", got)
	}
	proves(count, "b", 10, 5)
	if got := joins(); len(got) != 0 {
		t.Errorf("got %v, want none", got)
	}
}
