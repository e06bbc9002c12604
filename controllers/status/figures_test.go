// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"strings"
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

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/ledgerstore"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/metrics"
	"github.com/sharedquota/shared-quota-operator/internal/waiting"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

func number(name corev1.ResourceName, amount string) corev1.ResourceList {
	return corev1.ResourceList{name: resource.MustParse(amount)}
}

// newReader reads a quota whose config maps have been counted, but not yet its
// secrets.
func newReader(t *testing.T, namespaces bool, uid types.UID, calls interceptor.Funcs) *FiguresReader {
	t.Helper()
	quota := builders.Quota("team").Label("team", "shop").Hard("configmaps", "5").Hard("secrets", "5").Obj()
	quota.UID = "counted"
	stored := quota.DeepCopy()
	stored.UID = uid
	stored.Status.Conditions = []metav1.Condition{{Type: quotav1.ConditionReady, Status: metav1.ConditionFalse}}
	reader := fake.NewClientBuilder().WithScheme(knownTypes(t)).WithObjects(stored).WithInterceptorFuncs(calls).Build()

	clock := clocktesting.NewFakeClock(moment)
	count, _ := countOf(t, clock, quota)
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "c", UID: "c", ResourceVersion: "5"}}
	if err := count.Source(configMaps).Replace([]runtime.Object{object}, 5, moment); err != nil {
		t.Fatal(err)
	}
	group := driver.New(t.Context(), clock, ledgerstore.New(reader), nil, driver.Options{})
	held := ledger.Reservation{Object: ledger.Object{UID: "d", Name: "d", Namespace: "a"}, Amounts: number("configmaps", "1")}
	group.Saw("team", machine.Snapshot{Version: machine.Version{ResourceVersion: 1}, State: ledger.State{
		Basis: ledger.Basis{Quota: "counted"}, Reservations: map[ledger.Key]ledger.Reservation{held.Key(): held},
	}})

	elected := make(chan struct{})
	close(elected)
	status := NewLag(clock, elected)
	status.Changed([]string{"team"})
	clock.Step(time.Minute)
	return NewFiguresReader(Parts{
		Client: reader, Count: count, Group: group, Waiting: waiting.NewList(),
		StatusLag: status, ViewsLag: NewLag(clock, elected), Ledgers: Ledgers{Size: ledgerstore.Size}, Namespaces: namespaces,
	})
}

func TestFigures(t *testing.T) {
	hard := corev1.ResourceList{"configmaps": resource.MustParse("5"), "secrets": resource.MustParse("5")}
	conditions := []metav1.Condition{{Type: quotav1.ConditionReady, Status: metav1.ConditionFalse}}
	behind := map[metrics.Projection]time.Duration{metrics.Status: time.Minute, metrics.Views: 0}
	for name, test := range map[string]struct {
		namespaces bool
		uid        types.UID
		want       metrics.Figures
	}{
		"only what has been counted is used": {namespaces: true, uid: "counted", want: metrics.Figures{
			Quota: "team", Hard: hard, Used: number("configmaps", "1"), Reserved: number("configmaps", "1"), Reservations: 1,
			Namespaces: map[string]corev1.ResourceList{"a": number("configmaps", "1")}, Conditions: conditions, Lag: behind,
		}},
		"namespaces may be left out": {uid: "counted", want: metrics.Figures{
			Quota: "team", Hard: hard, Used: number("configmaps", "1"), Reserved: number("configmaps", "1"), Reservations: 1,
			Conditions: conditions, Lag: behind,
		}},
		"what was counted for another quota of that name isn't this one's": {namespaces: true, uid: "another", want: metrics.Figures{
			Quota: "team", Hard: hard, Used: corev1.ResourceList{}, Conditions: conditions, Lag: behind,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := newReader(t, test.namespaces, test.uid, interceptor.Funcs{}).Read()
			if diff := cmp.Diff([]metrics.Figures{test.want}, got); diff != "" {
				t.Errorf("figures (-want,+got):\n%s", diff)
			}
		})
	}
}

// The ledger settles an object's reservation a moment after the object is counted.
func TestAnObjectThatIsCountedIsNotReservedAsWell(t *testing.T) {
	reader := newReader(t, false, "counted", interceptor.Funcs{})
	state := ledger.State{Basis: ledger.Basis{Quota: "counted"}, Reservations: map[ledger.Key]ledger.Reservation{}}
	for _, uid := range []types.UID{"c", "d"} {
		held := ledger.Reservation{Amounts: number("configmaps", "1"), Object: ledger.Object{
			Resource: configMaps.WithVersion("v1"), Namespace: "a", Name: string(uid), UID: uid,
		}}
		state.Reservations[held.Key()] = held
	}
	reader.Group.Gone("team")
	reader.Group.Saw("team", machine.Snapshot{Version: machine.Version{ResourceVersion: 2}, State: state})
	current := reader.Read()[0]
	if diff := cmp.Diff(number("configmaps", "1"), current.Used); diff != "" {
		t.Errorf("used (-want,+got):\n%s", diff)
	}
	if diff := cmp.Diff(number("configmaps", "1"), current.Reserved); diff != "" || current.Reservations != 2 {
		t.Errorf("of %d reservations reserved (-want,+got):\n%s", current.Reservations, diff)
	}
}

func TestNothingIsKnownBeforeTheCacheIsFilled(t *testing.T) {
	calls := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("the cache is not started")
	}}
	if got := newReader(t, true, "counted", calls).Read(); len(got) != 0 {
		t.Errorf("got %v, want nothing", got)
	}
}

func TestTheSizeOfALedgerGrowsWithWhatIsInFlight(t *testing.T) {
	known := runtime.NewScheme()
	if err := quotav1.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	stored := &quotav1.QuotaLedger{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
	sizeWith := func(reservations ...string) int {
		stored.Entries.Reservations = reservations
		reader := fake.NewClientBuilder().WithScheme(knownTypes(t)).WithObjects(stored.DeepCopy()).Build()
		return NewFiguresReader(Parts{Client: reader, Ledgers: Ledgers{Size: ledgerstore.Size}}).ledgerBytes(t.Context(), "team")
	}
	empty, one, two := sizeWith(), sizeWith(strings.Repeat("r", 100)), sizeWith(strings.Repeat("r", 100), strings.Repeat("r", 100))
	// Each has its quotes and a comma.
	if empty == 0 || two-one != 103 || one-empty != 103 {
		t.Errorf("sizes %d, %d, %d", empty, one, two)
	}
	if none := NewFiguresReader(Parts{Client: fake.NewClientBuilder().WithScheme(knownTypes(t)).Build(), Ledgers: Ledgers{Size: ledgerstore.Size}}).ledgerBytes(t.Context(), "team"); none != 0 {
		t.Errorf("without a ledger %d", none)
	}
}
