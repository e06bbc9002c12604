// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/ledgerstore"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/waiting"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// viewBench has a ViewController for one quota of config maps, which are counted in
// namespace a.
type viewBench struct {
	*ViewController
	clock  *clocktesting.FakeClock
	client client.Client
	quota  *quotav1.ClusterResourceQuota
	basis  ledger.Basis
}

func newViewBench(t *testing.T, hard string, calls interceptor.Funcs) *viewBench {
	t.Helper()
	quota := builders.Quota("team").Label("team", "shop").Hard("configmaps", hard).Obj()
	quota.UID = "uid"
	b := &viewBench{clock: clocktesting.NewFakeClock(moment), quota: quota}
	b.client = fake.NewClientBuilder().WithScheme(knownTypes(t)).WithObjects(quota).WithInterceptorFuncs(calls).
		WithIndex(&quotav1.LocalResourceQuota{}, nameIndex, func(view client.Object) []string { return []string{view.GetName()} }).
		Build()
	count, basis := countOf(t, b.clock, quota)
	b.basis = basis
	group := driver.New(t.Context(), b.clock, ledgerstore.New(b.client), nil, driver.Options{})
	b.ViewController = NewViewController(Parts{
		Clock: b.clock, Client: b.client, Count: count, Waiting: waiting.NewList(), WakeOwners: true, Group: group, Problems: func(string) []Problem { return nil }, Settings: settings,
		Define: definition.Salvage, StatusLag: NewLag(b.clock, t.Context().Done()), ViewsLag: NewLag(b.clock, t.Context().Done()), Recorder: b, Every: time.Second,
	})
	return b
}

// Eventf implements report.Recorder. It drops the event.
func (*viewBench) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}

// counts lets the count have seen config maps of these names.
func (b *viewBench) counts(t *testing.T, names ...string) {
	t.Helper()
	objects := make([]runtime.Object, 0, len(names))
	for _, name := range names {
		objects = append(objects, &metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(name), ResourceVersion: "5"},
		})
	}
	if err := b.Count.Source(configMaps).Replace(objects, 5, moment); err != nil {
		t.Fatal(err)
	}
}

// holds lets the known ledger have a use of so many, and a charge for each name.
func (b *viewBench) holds(used string, names ...string) {
	state := ledger.State{Basis: b.basis, Used: configMapList(used), Reservations: map[ledger.Key]ledger.Reservation{}}
	for _, name := range names {
		held := ledger.Reservation{
			Object:  ledger.Object{Resource: configMaps.WithVersion("v1"), Namespace: "a", Name: name, UID: types.UID(name)},
			Amounts: configMapList("1"), Expiry: moment.Add(time.Minute),
		}
		state.Reservations[held.Key()] = held
	}
	b.Group.Gone("team")
	b.Group.Saw("team", machine.Snapshot{Version: machine.Version{ResourceVersion: 1}, State: state})
}

func configMapList(configMaps string) corev1.ResourceList {
	return corev1.ResourceList{"configmaps": resource.MustParse(configMaps)}
}

func (b *viewBench) reconcile(t *testing.T) time.Duration {
	t.Helper()
	result, err := b.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "team"}})
	if err != nil {
		t.Fatal(err)
	}
	return result.RequeueAfter
}

// view is the one in namespace a; zero if there is none.
func (b *viewBench) view(t *testing.T) quotav1.LocalResourceQuotaStatus {
	t.Helper()
	view := &quotav1.LocalResourceQuota{}
	if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "team"}, view); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return view.Status
}

// The ledger settles an object's reservation a moment after the object is counted.
// Until then the quota's status has it as used, and so must its views.
func TestAnObjectThatIsCountedIsUsedInTheTotal(t *testing.T) {
	b := newViewBench(t, "5", interceptor.Funcs{})
	b.counts(t, "m", "n")
	b.holds("0", "m", "n", "x")
	b.reconcile(t)
	want := map[string]corev1.ResourceList{"total": configMapList("2"), "here": configMapList("2"), "reserved": configMapList("1"), "available": configMapList("2")}
	current := b.view(t)
	got := map[string]corev1.ResourceList{
		"total": current.Total.Used, "here": current.Used, "reserved": current.Reserved, "available": current.Available,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("view (-want,+got):\n%s", diff)
	}
}

func TestFiguresOfTwoMomentsAreNotShown(t *testing.T) {
	b := newViewBench(t, "2", interceptor.Funcs{})
	b.counts(t, "m", "n")
	b.holds("1", "m", "failed")
	if wait := b.reconcile(t); wait < 20*time.Millisecond || wait > 50*time.Millisecond || b.view(t).Summary != "" {
		t.Fatalf("got a wait of %s and the view %+v, want some 30ms and none", wait, b.view(t))
	}
	b.holds("2")
	if wait := b.reconcile(t); wait != 0 || b.view(t).Summary != "configmaps: 2/2" || len(b.view(t).Reserved) > 0 {
		t.Errorf("then: got a wait of %s and the view %+v", wait, b.view(t))
	}
}

// One write that is never answered must not hold up those of a whole round.
func TestWritesOfViewsHaveADeadline(t *testing.T) {
	deadlines := map[string]time.Duration{}
	note := func(ctx context.Context, call string) {
		if until, bounded := ctx.Deadline(); bounded {
			deadlines[call] = time.Until(until) //nolint:forbidigo // a context's deadline is in real time
		}
	}
	b := newViewBench(t, "5", interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			note(ctx, "create")
			return c.Create(ctx, object, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			note(ctx, "update")
			return c.Update(ctx, object, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			note(ctx, "delete")
			return c.Delete(ctx, object, options...)
		},
	})
	b.counts(t, "m")
	b.holds("1")
	b.reconcile(t)
	b.counts(t, "m", "n")
	b.clock.Step(time.Second)
	b.reconcile(t)
	if err := b.client.Delete(t.Context(), b.quota); err != nil {
		t.Fatal(err)
	}
	delete(deadlines, "delete")
	b.clock.Step(time.Second)
	b.reconcile(t)
	for _, call := range []string{"create", "update", "delete"} {
		if left := deadlines[call]; left <= 0 || left > writeTimeout {
			t.Errorf("%s: got a deadline in %s, want one within %s", call, left, writeTimeout)
		}
	}
}
