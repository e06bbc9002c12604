// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

func TestTheObjectOfAReservationIsFoundInAnyServedVersion(t *testing.T) {
	down := errors.New("it is down")
	for name, test := range map[string]struct {
		reservation ledger.Reservation
		served      []string
		failing     error
		want        bool
		err         bool
	}{
		"created, and served as before": {
			reservation: reservationOf("g1", "uid-g1", ""), served: []string{"v1alpha1"}, want: true,
		},
		"created, and served in another version now": {
			reservation: reservationOf("g1", "uid-g1", ""), served: []string{"v1"}, want: true,
		},
		"created, and served in several versions, but no longer in its own": {
			reservation: reservationOf("g1", "uid-g1", ""), served: []string{"v2", "v1"}, want: true,
		},
		"never created": {
			reservation: reservationOf("g2", "uid-g2", ""), served: []string{"v1"},
		},
		"another of that name": {
			reservation: reservationOf("g1", "uid-before", ""), served: []string{"v1"},
		},
		"updated": {
			reservation: reservationOf("g1", "uid-g1", "10"), served: []string{"v1"}, want: true,
		},
		"not updated": {
			reservation: reservationOf("g1", "uid-g1", "11"), served: []string{"v1"},
		},
		"no longer served at all": {
			reservation: reservationOf("g1", "uid-g1", ""),
		},
		"no longer served in its version, and the new version isn't known": {
			reservation: reservationOf("g1", "uid-g1", ""), failing: down, err: true,
		},
		"served in its version, and discovery is down": {
			reservation: reservationOf("g1", "uid-g1", ""), served: []string{"v1alpha1"}, failing: down, want: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			world := newCluster(test.served...)
			world.failing = test.failing
			world.create("g1")
			got, err := NewLookup(metadataOf{world}, world).There(t.Context(), test.reservation)
			if got != test.want || (err != nil) != test.err {
				t.Errorf("want %t and an error: %t, got %t, %v", test.want, test.err, got, err)
			}
		})
	}
}

// A ledger has only a digest of a name that is too long for a request.
func TestAnObjectOfALongNameIsFound(t *testing.T) {
	world := newCluster("v1alpha1")
	name := strings.Repeat("g", 1<<20)
	world.create(name)
	world.create("g1")
	lookup := NewLookup(metadataOf{world}, world)
	for uid, want := range map[types.UID]bool{types.UID("uid-" + name): true, "uid-g1": false, "uid": false} {
		if got, err := lookup.There(t.Context(), reservationOf(evaluation.ShortName(name), uid, "")); got != want || err != nil {
			t.Errorf("UID %.10s: got %t, error %v, want %t", uid, got, err, want)
		}
	}
}

func reservationOf(name string, uid types.UID, from string) ledger.Reservation {
	return ledger.Reservation{
		Object: ledger.Object{Resource: gadgets.WithVersion("v1alpha1"), Namespace: "a", Name: name, UID: uid},
		From:   from,
	}
}

// Discovery may name a version that isn't served: that proves nothing.
func TestAVersionThatIsNamedAndNotServedIsAnError(t *testing.T) {
	world := newCluster()
	lookup := NewLookup(metadataOf{world}, discoveryFunc(func(context.Context, schema.GroupResource) (Served, error) {
		return Served{Versions: []string{"v1"}, Namespaced: true}, nil
	}))
	if there, err := lookup.There(t.Context(), reservationOf("g1", "uid-g1", "")); err == nil {
		t.Errorf("want an error, got %t", there)
	}
}

type discoveryFunc func(context.Context, schema.GroupResource) (Served, error)

func (f discoveryFunc) Find(ctx context.Context, resource schema.GroupResource) (Served, error) {
	return f(ctx, resource)
}

func TestTheNewestObjectIsFoundOrAnError(t *testing.T) {
	world := newCluster("v1")
	lookup := NewLookup(metadataOf{world}, world)
	newest := func(version string) (uint64, error) {
		newest, _, err := lookup.Newest(t.Context(), gadgets.WithVersion(version), metav1.NamespaceAll)
		return newest, err
	}
	if got, err := newest("v1"); got != 0 || err != nil {
		t.Errorf("of none: got %d, %v", got, err)
	}
	world.create("g1")
	world.create("g2")
	if got, err := newest("v1"); got != 12 || err != nil {
		t.Errorf("of two: got %d, %v", got, err)
	}
	// A count that need not have come anywhere would open a ledger too early.
	if got, err := newest("v1alpha1"); err == nil {
		t.Errorf("of a version that isn't served: want an error, got %d", got)
	}
}
