// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/apiserver"
)

// offerFor is how long the list of served resources is remembered.
const offerFor = 30 * time.Second

// Offer returns the resources that the cluster serves, for messages.
type Offer struct {
	clock clock.PassiveClock
	asked discovery.ServerResourcesInterfaceWithContext
	reads *apiserver.Reads[[]schema.GroupResource]
	// newest is the result of the last read.
	newest atomic.Pointer[offered]
}

// offered is the result of one read. A read that fails leaves the result before
// it.
type offered struct {
	at         time.Time
	namespaced []schema.GroupResource
}

// NewOffer makes an Offer.
func NewOffer(clock clock.PassiveClock, asked discovery.ServerResourcesInterfaceWithContext) *Offer {
	o := &Offer{clock: clock, asked: asked}
	o.newest.Store(&offered{})
	o.reads = apiserver.NewReads("what the cluster serves", o.read)
	return o
}

// Namespaced returns the resources that are served in namespaces, as far as that is known.
func (o *Offer) Namespaced(ctx context.Context) []schema.GroupResource {
	known := o.newest.Load()
	if o.clock.Since(known.at) < offerFor {
		return known.namespaced
	}
	namespaced, err := o.reads.Get(ctx, "")
	if err != nil {
		return known.namespaced // the caller has gone
	}
	return namespaced
}

func (o *Offer) read(ctx context.Context, _ string) ([]schema.GroupResource, error) {
	known := *o.newest.Load()
	if o.clock.Since(known.at) < offerFor {
		return known.namespaced, nil // it was read while this read waited
	}
	_, lists, err := o.asked.ServerGroupsAndResourcesWithContext(ctx)
	if known.at = o.clock.Now(); err == nil || discovery.IsGroupDiscoveryFailedError(err) {
		known.namespaced = namespacedIn(lists)
	}
	o.newest.Store(&known)
	return known.namespaced, nil
}

func namespacedIn(lists []*metav1.APIResourceList) (namespaced []schema.GroupResource) {
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, resource := range list.APIResources {
			if resource.Namespaced && !strings.Contains(resource.Name, "/") {
				namespaced = append(namespaced, schema.GroupResource{Group: version.Group, Resource: resource.Name})
			}
		}
	}
	slices.SortFunc(namespaced, compare)
	return slices.Compact(namespaced)
}
