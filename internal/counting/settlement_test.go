// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package counting

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

var shop = map[string]string{"team": "shop"}

// joining is a count of namespace a, which a ledger has counted, and namespace b, which
// joined at version 10.
func joining() *Count {
	count := newListed()
	mustReplace(count, configMaps, 5)
	mustReplace(count, secrets, 5)
	count.SetNamespace("b", shop, nil, 10, moment)
	return count
}

// proves is a look at a namespace's objects: a config map of this version, and no secret.
func proves(count *Count, namespace string, joined, version uint64) {
	for _, one := range unproved(count) {
		if one.Namespace == namespace {
			one.Version = joined
			count.Prove("team", one, map[schema.GroupResource]uint64{configMaps: version, secrets: 0})
		}
	}
}

func unproved(count *Count) (joined []Joined) {
	count.Read("team", func(view View) { joined = view.Unproved(func(uint64) bool { return false }) })
	return joined
}

// Requests in a namespace are judged by a ledger that has counted its objects.
func TestALedgerSettlesBeforeANamespaceOfWhichMoreIsToCome(t *testing.T) {
	const waits = 1000 // instead of a version
	for name, test := range map[string]struct {
		change func(*Count)
		known  func(*ledger.State)
		want   uint64
	}{
		"it hasn't been looked at":      {want: 1},
		"the ledger has counted it":     {known: func(known *ledger.State) { known.Counted[ledger.Namespaces] = 10 }, want: 10},
		"the count has all it brought":  {change: func(c *Count) { proves(c, "b", 10, 5) }, want: 10},
		"it brought nothing":            {change: func(c *Count) { proves(c, "b", 10, 0) }, want: 10},
		"more is to come":               {change: func(c *Count) { proves(c, "b", 10, 6) }, want: 1},
		"it came":                       {change: func(c *Count) { proves(c, "b", 10, 6); c.Source(configMaps).At(6) }, want: 10},
		"the look was for another join": {change: func(c *Count) { proves(c, "b", 9, 5) }, want: 1},
		"what it brought isn't served any more": {
			change: func(c *Count) { proves(c, "b", 10, 6); c.DropSource(configMaps) }, want: 10,
		},
		"another one joined, and is proved": {
			change: func(c *Count) { c.SetNamespace("c", shop, nil, 11, moment); proves(c, "c", 11, 5) }, want: 1,
		},
		"another one joined before, and is proved": {
			change: func(c *Count) {
				c.SetNamespace("c", shop, nil, 20, moment)
				proves(c, "b", 10, 5)
				c.SetNamespace("d", shop, nil, 30, moment)
			}, want: 10,
		},
		"it left":                {change: func(c *Count) { c.SetNamespace("b", nil, nil, 11, moment) }, want: 11},
		"another one left since": {change: func(c *Count) { c.SetNamespace("a", nil, nil, 11, moment) }, want: waits},
		"another one is deleted": {change: func(c *Count) { c.DeleteNamespace("a", 11) }, want: waits},
		"another one left, and it is proved": {
			change: func(c *Count) { c.SetNamespace("a", nil, nil, 11, moment); proves(c, "b", 10, 5) }, want: 11,
		},
		"another one left, and it has taken too long": {
			change: func(c *Count) {
				c.SetNamespace("a", nil, nil, 11, moment)
				c.Advance(moment.Add(5*time.Second), time.Hour)
			}, want: 11,
		},
		"they come and go all the time": {
			change: func(c *Count) {
				for i := range uint64(5) {
					now := moment.Add(time.Duration(i) * time.Second)
					c.SetNamespace("c", shop, nil, 11+2*i, now)
					c.Advance(now, time.Hour)
					c.SetNamespace("c", nil, nil, 12+2*i, now)
				}
				c.SetNamespace("c", shop, nil, 30, moment.Add(5*time.Second))
				c.SetNamespace("d", shop, nil, 31, moment.Add(5*time.Second))
				c.SetNamespace("d", nil, nil, 32, moment.Add(5*time.Second))
				c.Advance(moment.Add(5*time.Second), time.Hour)
			}, want: 32,
		},
		"another one may have left unseen": {
			change: func(c *Count) {
				c.SetNamespace("x", nil, nil, 9, moment)
				c.ReplaceNamespaces([]NamespaceLabels{
					{Name: "a", Labels: shop, Version: 1}, {Name: "b", Labels: shop, Version: 10}, {Name: "x", Version: 12},
				}, 13, moment)
			}, want: waits,
		},
		"it has taken too long": {change: func(c *Count) { c.Advance(moment.Add(5*time.Second), time.Hour) }, want: 10},
		"it has taken long":     {change: func(c *Count) { c.Advance(moment.Add(4*time.Second), time.Hour) }, want: 1},
		"it has changed unseen, and hasn't been looked at": {
			change: func(c *Count) {
				c.ReplaceNamespaces([]NamespaceLabels{
					{Name: "a", Labels: shop, Version: 1}, {Name: "b", Labels: shop, Version: 12},
				}, 12, moment)
			}, want: 1,
		},
		"a later look shows more": {
			change: func(c *Count) { proves(c, "b", 10, 5); proves(c, "b", 10, 9) }, want: 10,
		},
		"another one has changed": {change: func(c *Count) { c.SetNamespace("a", shop, nil, 11, moment) }, want: 1},
		"another one has changed unseen": {
			change: func(c *Count) {
				proves(c, "b", 10, 5)
				c.ReplaceNamespaces([]NamespaceLabels{
					{Name: "b", Labels: shop, Version: 10}, {Name: "a", Labels: shop, Version: 12},
				}, 12, moment)
			}, want: 10,
		},
		"it is audited": {
			change: func(c *Count) { proves(c, "b", 10, 6); c.Audit("team", moment); c.Source(configMaps).At(6) }, want: 10,
		},
		"another one is audited that left and is back": {
			change: func(c *Count) { proves(c, "b", 10, 5); c.Audit("team", moment) }, want: 10,
		},
		"the quota counts something else than the ledger": {known: func(known *ledger.State) { known.Digest = "another" }, want: waits},
		"the ledger is another quota's":                   {known: func(known *ledger.State) { known.Quota = "another" }, want: waits},
		"what is used is forgotten": {
			known: func(known *ledger.State) {
				draft := ledger.Edit(*known)
				draft.Forget(1)
				*known = draft.State()
			}, want: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			count, known := joining(), holding(list("configmaps", "0", "secrets", "0"))
			known.Counted = map[schema.GroupResource]uint64{ledger.Namespaces: 1, configMaps: 5, secrets: 5}
			count.Read("team", func(view View) { SettlementOf(view, known) }) // as after each event
			if test.change != nil {
				test.change(count)
			}
			if test.known != nil {
				test.known(&known)
			}
			got := uint64(waits)
			count.Read("team", func(view View) {
				if settlement := SettlementOf(view, known); settlement != nil {
					got = settlement.Touched[ledger.Namespaces]
					if settlement.Joined > got {
						t.Errorf("a join of version %d is settled, and namespaces count up to version %d", settlement.Joined, got)
					}
				}
			})
			if got != test.want {
				t.Errorf("namespaces count up to version %d, want %d (%d is for not at all)", got, test.want, waits)
			}
		})
	}
}

// Namespaces that a ledger has counted once need no proof, whichever leader
// counted them.
func TestOnlyWhatTheLedgerHasNotCountedIsLookedAt(t *testing.T) {
	count, known := joining(), holding(corev1.ResourceList{})
	known.Counted = map[schema.GroupResource]uint64{ledger.Namespaces: 1}
	want := func(want string) {
		t.Helper()
		got := ""
		count.Read("team", func(view View) {
			for _, one := range Unproved(view, known) {
				got += fmt.Sprintf("%s@%d seen: %t ", one.Namespace, one.Version, one.Seen)
			}
		})
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	want("b@10 seen: false ")
	proves(count, "b", 10, 6)
	want("b@10 seen: true ")
	count.Source(configMaps).At(6)
	want("")
}

// A look knows the sources that the quota was counted from when it began.
func TestALookForAnEarlierDefinitionProvesNothing(t *testing.T) {
	count := joining()
	before := unproved(count)
	define(count)
	for _, one := range before {
		count.Prove("team", one, map[schema.GroupResource]uint64{secrets: 0})
	}
	if current := unproved(count); len(current) != len(before) || current[0].Seen {
		t.Errorf("got %v, want the joins unproved", current)
	}
}

// A quota that is defined again keeps its knowledge of its namespaces.
func TestALimitThatIsRaisedForgetsNoNamespaceThatLeft(t *testing.T) {
	count := joining()
	count.SetNamespace("a", nil, nil, 11, moment)
	define(count)
	count.Read("team", func(view View) {
		if left := view.LastLeft(); left != 11 {
			t.Errorf("got %d, want 11", left)
		}
	})
}

// Nothing else reports the end of a wait.
func TestTheEndOfAJoinIsReported(t *testing.T) {
	for name, end := range map[string]func(*Count){
		"what is awaited isn't served any more": func(c *Count) { c.DropSource(configMaps) },
		"it took too long":                      func(c *Count) { c.Advance(moment.Add(time.Minute), time.Hour) },
		"it came":                               func(c *Count) { c.Source(configMaps).At(6) },
	} {
		t.Run(name, func(t *testing.T) {
			told := 0
			tell := func([]string) { told++ }
			count := New(evaluation.New(clocktesting.NewFakeClock(moment), evaluation.ClaimSources{}), tell, tell)
			count.SetNamespace("b", shop, nil, 10, moment)
			define(count)
			mustReplace(count, configMaps, 5)
			mustReplace(count, secrets, 5)
			proves(count, "b", 10, 6)
			told = 0
			end(count)
			if told == 0 {
				t.Error("nobody was told")
			}
		})
	}
}

// A bookmark comes each minute, for each watched resource. It changes no figures that people see.
func TestANewerVersionIsToldApart(t *testing.T) {
	changed, progressed := 0, 0
	count := New(evaluation.New(clocktesting.NewFakeClock(moment), evaluation.ClaimSources{}), func([]string) { changed++ }, func([]string) {})
	count.OnProgress(func([]string) { progressed++ })
	count.NamespacesAt(4)
	define(count)
	mustReplace(count, configMaps, 5)
	for _, test := range []struct {
		name                string
		step                func() error
		changes, progresses bool
	}{
		{"a bookmark of objects", func() error { count.Source(configMaps).At(6); return nil }, false, true},
		{"a bookmark of namespaces", func() error { count.NamespacesAt(7); return nil }, false, true},
		{"an old bookmark", func() error { count.Source(configMaps).At(3); return nil }, false, false},
		{"a namespace", func() error { count.SetNamespace("a", shop, nil, 20, moment); return nil }, true, false},
		{"an object", func() error { return count.Source(configMaps).Set(object("one", "21"), moment) }, true, false},
	} {
		changed, progressed = 0, 0
		if err := test.step(); err != nil {
			t.Error(err)
		}
		if changed > 0 != test.changes || progressed > 0 != test.progresses {
			t.Errorf("%s: %d changes and %d times progress were told", test.name, changed, progressed)
		}
	}
}
