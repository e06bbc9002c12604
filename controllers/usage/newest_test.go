// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

func newNewest(t *testing.T, world *cluster) *Newest {
	t.Helper()
	evaluators := evaluation.New(clock.RealClock{}, evaluation.ClaimSources{})
	return NewNewest(evaluators, world, NewLookup(metadataOf{world}, world))
}

func limitingGadgets() *quotav1.ClusterResourceQuota {
	quota := &quotav1.ClusterResourceQuota{}
	quota.Spec.Quota.Hard = corev1.ResourceList{countGadgets: resource.MustParse("10")}
	return quota
}

func TestNewestIsOfWhatIsServedNow(t *testing.T) {
	type versions = map[schema.GroupResource]uint64
	for name, test := range map[string]struct {
		served   []string
		change   func(*cluster)
		want     versions
		unlisted []schema.GroupResource
		failing  bool
	}{
		"in the version that is served":                       {served: []string{"v1alpha1"}, want: versions{gadgets: 11, ledger.Namespaces: 1}},
		"in another one":                                      {served: []string{"v1"}, want: versions{gadgets: 11, ledger.Namespaces: 1}},
		"of namespaces alone, if nothing serves the resource": {want: versions{ledger.Namespaces: 1}},
		"of namespaces alone, if it lives outside of them": {
			served: []string{"v1"}, change: func(c *cluster) { c.scope = meta.RESTScopeNameRoot }, want: versions{ledger.Namespaces: 1},
		},
		"of namespaces alone, if the served resources aren't known": {
			served: []string{"v1"}, change: func(c *cluster) { c.failing = errors.New("it is down") },
			want: versions{ledger.Namespaces: 1}, unlisted: []schema.GroupResource{gadgets},
		},
	} {
		t.Run(name, func(t *testing.T) {
			world := newCluster("v1alpha1")
			world.create("g1")
			world.serve(test.served...)
			if test.change != nil {
				test.change(world)
			}
			newest, err := newNewest(t, world).Limited(t.Context(), limitingGadgets())
			if (err != nil) != test.failing {
				t.Fatalf("error: got %v, want one: %t", err, test.failing)
			}
			want := ledger.Newest{Versions: test.want, Unlisted: sets.New(test.unlisted...)}
			if diff := cmp.Diff(want, newest); diff != "" && !test.failing {
				t.Errorf("newest (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestAListThatFailedIsNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := newCluster("v1")
		newest := newNewest(t, world)
		world.set(func() { world.forbidden = true })
		if found, err := newest.Limited(t.Context(), limitingGadgets()); err != nil || !found.Unlisted.Has(gadgets) {
			t.Errorf("got %v, %v; want it unlisted", found, err)
		}
		world.set(func() { world.forbidden = false })
		if found, err := newest.Limited(t.Context(), limitingGadgets(), gadgets); err != nil || len(found.Versions) != 1 || found.Unlisted.Len() > 0 {
			t.Errorf("got %v, %v; want it listed, and nothing else", found, err)
		}
	})
}
