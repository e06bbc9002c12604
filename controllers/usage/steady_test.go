// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// An API server that is upgraded, or that is yet to be, may not serve a resource that another one does.
func TestOneAPIServerAloneTakesNothingForGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newWatchesBench(t, newCluster("v1"))
		b.cluster.create("g1")
		b.want("red", gadgets)
		b.expect("counted 1")
		b.cluster.serve()
		b.pass(unservedFor - time.Minute)
		b.expect("counted 1, NotWatchable")
		b.cluster.serve("v1") // by the next API server that is asked
		b.cluster.create("g2")
		b.pass(lookUpLatest)
		b.expect("counted 2")
		b.cluster.serve()
		b.pass(unservedFor - time.Minute)
		b.expect("counted 2, NotWatchable")
		b.pass(time.Minute + 2*lookUpLatest)
		b.expect("counted 0, incomplete, not served, NotServed")
	})
}

func TestAResourceWithoutDefinitionIsGoneAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newWatchesBench(t, newCluster("v1"))
		b.cluster.create("g1")
		b.want("red", gadgets)
		b.expect("counted 1")
		b.Redefined(gadgets, true)
		b.cluster.create("g2") // as long as it is going
		b.pass(time.Minute)
		b.expect("counted 2")
		b.cluster.serve()
		b.Redefined(gadgets, true)
		b.pass(lookUpLatest)
		b.expect("counted 0, incomplete, not served, NotServed")
	})
}

// A leader that begins asks an API server that doesn't serve gadgets. Quota blue has never
// counted any; the ledger of quota red has.
func TestANewLeaderKeepsResourcesThatALedgerHasCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newWatchesBench(t, newCluster())
		b.want("blue", gadgets)
		b.pass(time.Minute)
		b.expect("counted 0, incomplete, not served")
		b.Counted(gadgets)
		b.want("red", gadgets)
		b.pass(time.Minute)
		b.expect("counted 0, incomplete, NotWatchable")
		b.pass(unservedFor)
		b.expect("counted 0, incomplete, not served, NotServed")
	})
}

// Claims are counted in one version alone.
func TestAResourceThatCannotBeCountedIsNotFound(t *testing.T) {
	discovery := NewSteadyDiscovery(clock.RealClock{}, discoveryFunc(
		func(context.Context, schema.GroupResource) (Served, error) {
			return Served{Versions: []string{"v1beta1", "v1"}, Namespaced: true}, nil
		}))
	for resource, want := range map[schema.GroupResource]int{DeviceClaims: 1, gadgets: 2} {
		if got, err := discovery.Find(t.Context(), resource); err != nil || len(got.Versions) != want {
			t.Errorf("got %v, %v, want %d versions", got, err, want)
		}
	}
}

// An API server that doesn't serve a reservation's resource may not know of its
// object.
func TestAnExpiredReservationStaysWhileAnotherAPIServerMayServeItsObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newExpiryBench(t)
		b.watching.expect("counted 1")
		b.holds(ledger.Fence{}, held("g1", ""))
		b.sees(time.Minute)
		b.watching.cluster.serve()
		if _, err := b.expire(t.Context(), "red", b.sight("red")); err == nil {
			t.Error("want an error, because nobody knows")
		}
		b.wantStored("q, g1")
		b.watching.pass(unservedFor + lookUpLatest)
		if _, err := b.expire(t.Context(), "red", b.sight("red")); err != nil {
			t.Error(err)
		}
		b.wantStored("q")
	})
}
