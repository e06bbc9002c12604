// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package counting

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

var (
	moment  = time.Unix(1000, 0)
	secrets = schema.GroupResource{Resource: "secrets"}
	basis   = ledger.Basis{Quota: "uid", Generation: 2, Digest: "same"}
)

func list(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// newListed makes a Count of the config maps and secrets in namespace a, once they are listed.
func newListed() *Count {
	ignore := func([]string) {}
	count := New(evaluation.New(clocktesting.NewFakeClock(moment), evaluation.ClaimSources{}), ignore, ignore)
	count.ReplaceNamespaces([]NamespaceLabels{{Name: "a", Labels: map[string]string{"team": "shop"}, Version: 1}}, 1, moment)
	define(count)
	return count
}

// define has the quota counted again. It limits config maps and secrets, or some of them.
func define(count *Count, names ...corev1.ResourceName) {
	sources := map[corev1.ResourceName][]schema.GroupResource{"configmaps": {configMaps}, "secrets": {secrets}}
	if names != nil {
		maps.DeleteFunc(sources, func(name corev1.ResourceName, _ []schema.GroupResource) bool { return !slices.Contains(names, name) })
	}
	limits := builders.Quota("team").Label("team", "shop")
	for name := range sources {
		limits = limits.Hard(name, "9")
	}
	compiled, err := definition.Compile(limits.Obj())
	if err != nil {
		panic(err)
	}
	count.Define(Target{
		UID: basis.Quota, Generation: basis.Generation, Digest: basis.Digest, Quota: compiled.Quota, Selector: compiled.Selector,
		Sources: sources,
	}, moment)
}

func object(name, version string) runtime.Object {
	return &metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(name), ResourceVersion: version},
	}
}

func mustReplace(count *Count, of schema.GroupResource, version uint64, objects ...runtime.Object) {
	if err := count.Source(of).Replace(objects, version, moment); err != nil {
		panic(err)
	}
}

// holding is a ledger with a charge of one config map for each name.
func holding(used corev1.ResourceList, names ...string) ledger.State {
	state := ledger.State{Basis: basis, Used: used, Reservations: map[ledger.Key]ledger.Reservation{}}
	for _, name := range names {
		held := held(name)
		state.Reservations[held.Key()] = held
	}
	return state
}

func held(name string) ledger.Reservation {
	return ledger.Reservation{
		Object:  ledger.Object{Resource: configMaps.WithVersion("v1"), Namespace: "a", Name: name, UID: types.UID(name)},
		Amounts: list("configmaps", "1"), Expiry: moment.Add(time.Minute),
	}
}

func TestBalance(t *testing.T) {
	both := list("configmaps", "2", "secrets", "0")
	for name, test := range map[string]struct {
		known    ledger.State
		used     corev1.ResourceList
		reserved corev1.ResourceList
	}{
		"what is in flight is reserved": {known: holding(both, "x", "y"), used: both, reserved: list("configmaps", "2")},
		"what is counted is used, although its reservation isn't settled": {
			known: holding(list("configmaps", "0", "secrets", "0"), "m", "n", "x"), used: both, reserved: list("configmaps", "1"),
		},
		"what came and went is neither": {known: holding(both, "gone", "x"), used: both, reserved: list("configmaps", "1")},
		"a count that is behind the ledger settles nothing": {
			known: func() ledger.State {
				ahead := holding(both, "m")
				ahead.Counted = map[schema.GroupResource]uint64{configMaps: 99}
				return ahead
			}(),
			used: both, reserved: list("configmaps", "1"),
		},
		"a ledger of the quota before reserves nothing": {
			known: func() ledger.State {
				before := holding(both, "x")
				before.Quota = "before"
				return before
			}(),
			used: both,
		},
		"nor does one that isn't there": {used: both},
	} {
		t.Run(name, func(t *testing.T) {
			count := newListed()
			mustReplace(count, secrets, 1)
			mustReplace(count, configMaps, 5, object("m", "2"), object("n", "3"), object("gone", "4"))
			if err := count.Source(configMaps).Delete(object("gone", "6"), moment); err != nil {
				t.Fatal(err)
			}
			before := len(test.known.Reservations)
			got := BalanceOf(count, "team", basis.Quota, test.known)
			if diff := cmp.Diff(test.used, got.Used); diff != "" {
				t.Errorf("used (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(test.reserved, got.Reserved); diff != "" && len(test.reserved)+len(got.Reserved) > 0 {
				t.Errorf("reserved (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(map[string]corev1.ResourceList{"a": test.used}, got.Slices); diff != "" {
				t.Errorf("slices (-want,+got):\n%s", diff)
			}
			if len(got.Complete) != 2 || got.Selection == 0 || got.Target.Generation != basis.Generation {
				t.Errorf("got %v of selection %d and generation %d", got.Complete, got.Selection, got.Target.Generation)
			}
			if len(test.known.Reservations) != before {
				t.Error("the ledger that was given is changed")
			}
		})
	}
}

func TestTheBalanceOfAQuotaThatIsNotCounted(t *testing.T) {
	known := holding(nil, "x")
	for name, test := range map[string]struct {
		quota string
		uid   types.UID
		want  Balance
	}{
		"it is another's, which had the same name": {quota: "team", uid: "another", want: Balance{}},
		"its count has not begun":                  {quota: "other", uid: basis.Quota, want: Balance{Reserved: list("configmaps", "1")}},
	} {
		t.Run(name, func(t *testing.T) {
			got := BalanceOf(newListed(), test.quota, test.uid, known)
			if diff := cmp.Diff(test.want.Reserved, got.Reserved); diff != "" || got.Target.UID != "" || got.Slices != nil {
				t.Errorf("got %+v, reserved (-want,+got):\n%s", got, diff)
			}
		})
	}
}

func TestTorn(t *testing.T) {
	for name, test := range map[string]struct {
		hard, used, reserved corev1.ResourceList
		want                 bool
	}{
		"nothing is reserved":                   {hard: list("pods", "2"), used: list("pods", "2")},
		"both reach the limit":                  {hard: list("pods", "3"), used: list("pods", "2"), reserved: list("pods", "1")},
		"both are above it":                     {hard: list("pods", "2"), used: list("pods", "2"), reserved: list("pods", "1"), want: true},
		"by a fraction of one of several":       {hard: list("pods", "9", "cpu", "2"), used: list("pods", "1", "cpu", "1"), reserved: list("cpu", "1001m"), want: true},
		"used alone is above it":                {hard: list("pods", "2"), used: list("pods", "3"), reserved: list("pods", "1")},
		"the resource isn't counted yet":        {hard: list("pods", "2"), reserved: list("pods", "3")},
		"what is reserved isn't limited":        {hard: list("pods", "2"), used: list("pods", "2"), reserved: list("cpu", "3")},
		"there is no limit, and nothing at all": {},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Torn(test.hard, test.used, test.reserved); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// A request fails, and its place is taken and counted before the process learns of
// the ledger that gave it back.
func TestALedgerThatIsOldTearsTheFigures(t *testing.T) {
	hard, none := list("configmaps", "1"), list("configmaps", "0", "secrets", "0")
	old, newest := holding(none, "failed"), holding(none, "next")
	count := newListed()
	mustReplace(count, configMaps, 5, object("next", "5"))
	if current := BalanceOf(count, "team", basis.Quota, old); !Torn(hard, current.Used, current.Reserved) {
		t.Errorf("by the old ledger: %v used and %v reserved of 1", current.Used, current.Reserved)
	}
	if current := BalanceOf(count, "team", basis.Quota, newest); Torn(hard, current.Used, current.Reserved) {
		t.Errorf("by the newest: %v used and %v reserved of 1", current.Used, current.Reserved)
	}
}
