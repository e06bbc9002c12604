// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package wake

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/ledgerstore"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/metrics"
	"github.com/sharedquota/shared-quota-operator/internal/waiting"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

var configMaps = schema.GroupResource{Resource: "configmaps"}

func one() corev1.ResourceList {
	return builders.Quota("").Hard("configmaps", "1").Obj().Spec.Quota.Hard
}

// bench is a Waker, a quota on config maps of namespace shop, of which none is counted, and its ledger.
type bench struct {
	*Waker
	clock    *clocktesting.FakeClock
	api      *api
	registry *prometheus.Registry
	quota    *quotav1.ClusterResourceQuota
	state    ledger.State
	version  uint64
}

func newBench(t *testing.T, hard string, answer func(name string) (runtime.Object, error)) *bench {
	t.Helper()
	b := &bench{clock: clocktesting.NewFakeClock(time.Unix(1000, 0)), registry: prometheus.NewRegistry()}
	b.quota = builders.Quota("team").Label("team", "shop").Hard("configmaps", hard).Obj()
	b.quota.UID = "uid"
	known := runtime.NewScheme()
	if err := quotav1.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientBuilder().WithScheme(known).WithObjects(b.quota).Build()
	compiled, err := definition.Compile(b.quota)
	if err != nil {
		t.Fatal(err)
	}
	ignore := func([]string) {}
	count := counting.New(evaluation.New(b.clock, evaluation.ClaimSources{}), ignore, ignore)
	count.ReplaceNamespaces([]counting.NamespaceLabels{{Name: "shop", Labels: map[string]string{"team": "shop"}}}, 1, b.clock.Now())
	count.Define(counting.Target{
		UID: "uid", Digest: compiled.Limits.Digest, Quota: compiled.Quota, Selector: compiled.Selector,
		Sources: map[corev1.ResourceName][]schema.GroupResource{"configmaps": {configMaps}},
	}, b.clock.Now())
	if err := count.Source(configMaps).Replace(nil, 5, b.clock.Now()); err != nil {
		t.Fatal(err)
	}
	b.api = newAPI(t, answer)
	b.Waker = NewWaker(WakerParts{
		Clock: b.clock, Client: client, Count: count,
		Group: driver.New(t.Context(), b.clock, ledgerstore.New(client), nil, driver.Options{}),
		List:  waiting.NewList(), Workloads: b.api.Workloads, Metrics: metrics.New(b.registry),
	})
	b.state = ledger.State{Basis: compiled.Limits.Basis, Used: corev1.ResourceList{}, Reservations: map[ledger.Key]ledger.Reservation{}}
	b.saw()
	return b
}

// saw has the ledger seen as it is.
func (b *bench) saw() {
	b.version++
	b.Group.Gone("team")
	b.Group.Saw("team", machine.Snapshot{Version: machine.Version{ResourceVersion: b.version}, State: b.state})
}

func (b *bench) refuse(names ...string) {
	for _, name := range names {
		refusal := refusalOf(name)
		refusal.Requested = one()
		b.List.Refused(b.clock.Now(), refusal)
		b.clock.Step(time.Millisecond)
	}
}

func (b *bench) reconcile(t *testing.T) time.Duration {
	t.Helper()
	result, err := b.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "team"}})
	if err != nil {
		t.Fatal(err)
	}
	return result.RequeueAfter
}

// woken returns the names of the workloads that were woken so far, and forgets them.
func (b *bench) woken() map[string]bool {
	b.api.mu.Lock()
	defer b.api.mu.Unlock()
	names := map[string]bool{}
	for _, patch := range b.api.patches {
		_, rest, _ := strings.Cut(patch, "shop/")
		name, _, _ := strings.Cut(rest, " ")
		names[name] = true
	}
	b.api.patches = nil
	return names
}

func named(names ...string) map[string]bool {
	all := map[string]bool{}
	for _, name := range names {
		all[name] = true
	}
	return all
}

func lacking(t *testing.T, number int64) func(name string) (runtime.Object, error) {
	t.Helper()
	return func(name string) (runtime.Object, error) { return replicaSet(t, name, number), nil }
}

func TestAsManyWorkloadsAreWokenAsFit(t *testing.T) {
	for name, test := range map[string]struct {
		hard   string
		change func(*bench)
		lacks  int64
		want   map[string]bool
	}{
		"those that have waited longest":                          {hard: "2", lacks: 1, want: named("a", "b")},
		"all if there is room for all":                            {hard: "9", lacks: 1, want: named("a", "b", "c")},
		"none if there is no room":                                {hard: "0", lacks: 1, want: named()},
		"none while nothing is granted":                           {hard: "9", lacks: 1, want: named(), change: func(b *bench) { b.state.Sealed = time.Unix(1, 0); b.saw() }},
		"none while the ledger is another quota's":                {hard: "9", lacks: 1, want: named(), change: func(b *bench) { b.state.Quota = "another"; b.saw() }},
		"none while it isn't counted for this spec":               {hard: "9", lacks: 1, want: named(), change: func(b *bench) { b.state.Digest = "before"; b.saw() }},
		"all if the quota is deleted":                             {hard: "0", lacks: 1, want: named("a", "b", "c"), change: func(b *bench) { _ = b.Client.Delete(context.Background(), b.quota) }},
		"room that the ledger hasn't settled is none":             {hard: "1", lacks: 1, want: named(), change: func(b *bench) { b.state.Used = one(); b.saw() }},
		"room that is reserved is none":                           {hard: "2", lacks: 1, want: named("a"), change: func(b *bench) { b.reserve("x") }},
		"room that a replica holds in escrow is":                  {hard: "2", lacks: 1, want: named("a", "b"), change: func(b *bench) { b.escrow() }},
		"room that is counted, and recorded later, is taken once": {hard: "3", lacks: 1, want: named("a", "b"), change: func(b *bench) { b.count(t, "x"); b.reserve("x") }},
		"and those of a namespace that left the quota": {hard: "0", lacks: 1, want: named("a", "b", "c"), change: func(b *bench) {
			b.Count.SetNamespace("shop", nil, nil, 2, b.clock.Now())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, test.hard, lacking(t, test.lacks))
			b.refuse("a", "b", "c")
			if test.change != nil {
				test.change(b)
			}
			b.reconcile(t)
			if diff := cmp.Diff(test.want, b.woken()); diff != "" {
				t.Errorf("woken (-want,+got):\n%s", diff)
			}
		})
	}
}

func (b *bench) reserve(name string) {
	held := ledger.Reservation{
		Object:  ledger.Object{Resource: configMaps.WithVersion("v1"), Namespace: "shop", Name: name, UID: types.UID(name)},
		Amounts: one(),
	}
	b.state.Reservations[held.Key()] = held
	b.saw()
}

// count has a config map counted, by the ledger, too.
func (b *bench) count(t *testing.T, name string) {
	t.Helper()
	counted := builders.ConfigMap("shop", name)
	counted.UID, counted.ResourceVersion = types.UID(name), "6"
	if err := b.Count.Source(configMaps).Replace([]runtime.Object{counted}, 6, b.clock.Now()); err != nil {
		t.Fatal(err)
	}
	b.state.Used = one()
	b.saw()
}

func (b *bench) escrow() {
	key := ledger.EscrowKey{Process: "process", Number: 1}
	b.state.Escrows = map[ledger.EscrowKey]ledger.Escrow{key: {EscrowKey: key, Amounts: one()}}
	b.saw()
}

// It lacks more than was thought before it was woken.
func TestAllThatAWorkloadLacksIsKeptForIt(t *testing.T) {
	b := newBench(t, "10", lacking(t, 9))
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("w%02d", i))
	}
	b.refuse(names...)
	b.reconcile(t)
	if woken := b.woken(); len(woken) != firstWakes {
		t.Errorf("%d were woken", len(woken))
	}
}

// The room is for 60. After the first ones, each takes nine.
func TestMoreAreWokenAtOnceAsLongAsNoneLacksMoreThanOne(t *testing.T) {
	b := newBench(t, "60", func(name string) (runtime.Object, error) {
		if name < "w08" {
			return replicaSet(t, name, 1), nil
		}
		return replicaSet(t, name, 9), nil
	})
	for i := range 40 {
		b.refuse(fmt.Sprintf("w%02d", i))
	}
	b.reconcile(t)
	if woken := b.woken(); len(woken) != firstWakes+2*firstWakes {
		t.Errorf("%d were woken", len(woken))
	}
}

func TestAWorkloadThatLacksNothingWaitsNoLonger(t *testing.T) {
	b := newBench(t, "1", lacking(t, 0))
	b.refuse("a", "b", "c")
	b.reconcile(t)
	if diff := cmp.Diff(named("a", "b", "c"), b.woken()); diff != "" || owners(b.List) != 0 {
		t.Errorf("%d wait; woken (-want,+got):\n%s", owners(b.List), diff)
	}
}

func TestAllQuotasTogetherWakeSoManyInASecond(t *testing.T) {
	b := newBench(t, "1k", lacking(t, 1))
	var names []string
	for i := range 300 {
		names = append(names, fmt.Sprintf("w%03d", i))
	}
	b.refuse(names...)
	again := b.reconcile(t)
	if woken := b.woken(); len(woken) != wakesPerSecond || again == 0 || again > 100*time.Millisecond {
		t.Errorf("%d were woken, again after %s", len(woken), again)
	}
	b.clock.Step(250 * time.Millisecond)
	b.reconcile(t)
	if woken := b.woken(); len(woken) != 50 {
		t.Errorf("%d were woken in a quarter of a second", len(woken))
	}
}

func TestWithoutTheRightWorkloadsWaitOn(t *testing.T) {
	b := newBench(t, "9", func(name string) (runtime.Object, error) {
		return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "replicasets/status"}, name, errors.New("rbac"))
	})
	b.refuse("a", "b")
	tries := 0
	for range 10 {
		again := b.reconcile(t)
		tries += len(b.woken())
		b.clock.Step(max(again, time.Millisecond))
	}
	if owners(b.List) != 2 || tries == 0 || tries > 20 {
		t.Errorf("%d wait after %d tries", owners(b.List), tries)
	}
	const failures = "sharedquota_owners_wake_failures_total"
	if err := testutil.GatherAndCompare(b.registry, strings.NewReader(fmt.Sprintf(
		"# HELP %[1]s Workloads that the API server did not let the operator wake. The leader's log says why.\n"+
			"# TYPE %[1]s counter\n%[1]s{quota=\"team\"} %d\n", failures, tries)), failures); err != nil {
		t.Error(err)
	}
}

func TestARefusalAfterAWakeIsCounted(t *testing.T) {
	b := newBench(t, "1", lacking(t, 1))
	b.refuse("a")
	b.reconcile(t)
	b.refuse("a")
	again := b.reconcile(t)
	if again <= 0 || again > time.Second {
		t.Errorf("again after %s", again)
	}
	b.clock.Step(again)
	b.reconcile(t)
	const counters = "# HELP sharedquota_owners_refused_again_total Workloads of which an object was refused after they were woken. " +
		"Somebody else took the room.\n# TYPE sharedquota_owners_refused_again_total counter\n" +
		"sharedquota_owners_refused_again_total{quota=\"team\"} 1\n" +
		"# HELP sharedquota_owners_woken_total Workloads that were woken because there was room for their objects, each time.\n" +
		"# TYPE sharedquota_owners_woken_total counter\nsharedquota_owners_woken_total{quota=\"team\"} 2\n"
	if err := testutil.GatherAndCompare(b.registry, strings.NewReader(counters),
		"sharedquota_owners_refused_again_total", "sharedquota_owners_woken_total"); err != nil {
		t.Error(err)
	}
}

func owners(list *waiting.List) int {
	number, _ := list.Summary("team")
	return number
}

func refusalOf(name string) waiting.Refusal {
	return waiting.Refusal{
		Owner: waiting.Owner{Kind: waiting.ReplicaSet, Namespace: "shop", Name: name, UID: types.UID("uid-" + name)}, Quota: "team",
	}
}
