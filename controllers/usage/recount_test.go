// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/ledgerstore"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/metrics"
)

// recountsBench is an operator's process with a quota of which 1 pod was used.
type recountsBench struct {
	*Recounts
	t     *testing.T
	store *ledgerstore.Store
	quota *quotav1.ClusterResourceQuota
	// broken: pods can't be listed.
	broken bool
	// asked are the resources that were asked for; none for all.
	asked [][]schema.GroupResource
	// failing: the newest objects are unknown.
	failing error
}

func newRecountsBench(t *testing.T) *recountsBench {
	t.Helper()
	known := runtime.NewScheme()
	if err := quotav1.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	b := &recountsBench{t: t, quota: &quotav1.ClusterResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team", UID: "q"}}}
	numbers := &recoveryBench{t: t}
	b.store = ledgerstore.New(numbers.numbering(fake.NewClientBuilder().WithScheme(known).WithObjects(b.quota).Build()))
	if _, err := b.store.Swap(t.Context(), "team", machine.Version{}, ledger.State{
		Basis:   ledger.Basis{Quota: "q", Generation: 1, Digest: "d"},
		Used:    corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")},
		Counted: map[schema.GroupResource]uint64{{Resource: "pods"}: 5, ledger.Namespaces: 3},
	}); err != nil {
		t.Fatal(err)
	}
	options := driver.Options{Options: machine.Options{MaxWaiting: 10}, CallTimeout: time.Second, EditTimeout: time.Second}
	group := driver.New(t.Context(), clock.RealClock{}, b.store, metrics.New(prometheus.NewRegistry()), options)
	b.Recounts = NewRecounts(t.Context(), &Parts{Clock: clock.RealClock{}, Group: group},
		func(_ context.Context, _ *quotav1.ClusterResourceQuota, only ...schema.GroupResource) (ledger.Newest, error) {
			b.asked = append(b.asked, only)
			if b.broken {
				return ledger.Newest{
					Versions: map[schema.GroupResource]uint64{ledger.Namespaces: 88}, Unlisted: sets.New(schema.GroupResource{Resource: "pods"}),
				}, b.failing
			}
			return ledger.Newest{Versions: map[schema.GroupResource]uint64{{Resource: "pods"}: 77, ledger.Namespaces: 88}}, b.failing
		})
	return b
}

func (b *recountsBench) stored() ledger.State {
	b.t.Helper()
	stored, err := b.store.Load(b.t.Context(), "team", machine.Load{})
	if err != nil {
		b.t.Fatal(err)
	}
	return stored.State
}

// follows calls Follow until there is nothing to do, or up to n times.
func (b *recountsBench) follows(n int) {
	for range n {
		wait := b.Follow(b.quota)
		if wait == 0 {
			return
		}
		clock.RealClock{}.Sleep(wait)
		synctest.Wait()
	}
}

// A ledger that is counted again takes no count that lacks objects that were
// stored by then.
func TestARecountDemandsWhatIsStoredNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRecountsBench(t)
		if wait := b.Follow(b.quota); wait != 0 {
			t.Errorf("want nothing to do, got a wait of %s", wait)
		}
		if err := b.Forget(t.Context(), "team", "q"); err != nil {
			t.Fatal(err)
		}
		if current := b.stored(); current.Used != nil || current.Forgotten == 0 {
			t.Errorf("want what is used forgotten, got %+v", current)
		}
		b.follows(2)
		current := b.stored()
		if diff := cmp.Diff(map[schema.GroupResource]uint64{{Resource: "pods"}: 77, ledger.Namespaces: 88}, current.Counted); diff != "" {
			t.Errorf("counted (-want,+got):\n%s", diff)
		}
		if current.Used != nil {
			t.Errorf("want nothing used before the count, got %v", current.Used)
		}
	})
}

func TestAQuotaGrantsNothingWhileNobodyKnowsTheNewestObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRecountsBench(t)
		b.failing = errors.New("forbidden")
		if err := b.Forget(t.Context(), "team", "q"); err != nil {
			t.Fatal(err)
		}
		b.follows(3)
		if current := b.stored(); current.Used != nil || current.Forgotten == 0 {
			t.Errorf("want it to stay forgotten, got %+v", current)
		}
		b.failing = nil
		b.follows(2)
		if current := b.stored(); current.Forgotten != 0 {
			t.Errorf("want it followed once the objects can be listed, got %+v", current)
		}
	})
}

// A custom resource whose objects can't be converted keeps nothing else from
// being counted.
func TestAResourceThatCannotBeListedIsDemandedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRecountsBench(t)
		b.broken = true
		if err := b.Forget(t.Context(), "team", "q"); err != nil {
			t.Fatal(err)
		}
		b.follows(4)
		current := b.stored()
		if current.Forgotten != 0 || len(current.Unlisted) != 1 {
			t.Errorf("want all but pods demanded, got %+v", current)
		}
		last := b.asked[len(b.asked)-1]
		if diff := cmp.Diff([]schema.GroupResource{{Resource: "pods"}}, last); diff != "" {
			t.Errorf("asked for (-want,+got):\n%s", diff)
		}
		b.broken = false
		b.follows(3)
		if current := b.stored(); len(current.Unlisted) != 0 || current.Counted[schema.GroupResource{Resource: "pods"}] != 77 {
			t.Errorf("want pods demanded once they can be listed, got %+v", current)
		}
		if wait := b.Follow(b.quota); wait != 0 {
			t.Errorf("want nothing more to do, got a wait of %s", wait)
		}
	})
}

func TestAnotherQuotaOfTheNameIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRecountsBench(t)
		if err := b.Forget(t.Context(), "team", "another"); err == nil {
			t.Error("want an error")
		}
		if current := b.stored(); current.Used == nil {
			t.Errorf("want it kept, got %+v", current)
		}
	})
}
