// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// unservedFor is for how long a resource that was served, or counted, must not be served before it counts as gone. A
// control plane that is upgraded has API servers of two versions for minutes, and one of them may not serve a resource
// that another one does.
const unservedFor = 10 * time.Minute

// DeviceClaims are the claims whose use depends on device classes.
var DeviceClaims = schema.GroupResource{Group: resourceapi.GroupName, Resource: "resourceclaims"}

// SteadyDiscovery is a Discovery that doesn't take one API server's word for it that a resource
// is gone: objects of it may be created by another one. It finds only the versions that can be
// counted.
type SteadyDiscovery struct {
	clock clock.PassiveClock
	asked Discovery

	mu sync.Mutex
	// resources that were served, or counted -> since when they aren't served; zero if they are
	known map[schema.GroupResource]time.Time
}

var _ Discovery = &SteadyDiscovery{}

// NewSteadyDiscovery makes a SteadyDiscovery that asks another one.
func NewSteadyDiscovery(clock clock.PassiveClock, asked Discovery) *SteadyDiscovery {
	return &SteadyDiscovery{clock: clock, asked: asked, known: map[schema.GroupResource]time.Time{}}
}

// NewDiscovery makes a SteadyDiscovery that asks the API server.
func NewDiscovery(clock clock.PassiveClock, config *rest.Config, client *http.Client) (*SteadyDiscovery, error) {
	live, err := NewLiveDiscovery(config, client)
	return NewSteadyDiscovery(clock, live), err
}

// Find implements Discovery.
func (d *SteadyDiscovery) Find(ctx context.Context, resource schema.GroupResource) (Served, error) {
	served, err := d.asked.Find(ctx, resource)
	if err != nil {
		return Served{}, err
	}
	if resource == DeviceClaims {
		// The evaluator knows no other version.
		served.Versions = slices.DeleteFunc(served.Versions, func(v string) bool { return v != resourceapi.SchemeGroupVersion.Version })
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	since, known := d.known[resource]
	now := d.clock.Now()
	switch {
	case len(served.Versions) > 0:
		d.known[resource] = time.Time{}
		return served, nil
	case !known:
		return Served{}, nil
	case since.IsZero():
		d.known[resource], since = now, now
	case now.Sub(since) >= unservedFor:
		delete(d.known, resource)
		return Served{}, nil
	}
	return Served{}, fmt.Errorf("the API server that was asked has not served %s since %s, and another one may: "+
		"it counts as gone if that is so until %s, or once its CustomResourceDefinition is deleted",
		resource, since.UTC().Format(time.TimeOnly), since.Add(unservedFor).UTC().Format(time.TimeOnly))
}

// Counted notes that a resource was counted, so it is or was served.
func (d *SteadyDiscovery) Counted(resource schema.GroupResource) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.known[resource]; !known {
		d.known[resource] = time.Time{}
	}
}

// Gone notes that the definition of a resource is being deleted, so the resource is certainly gone once it isn't
// served.
func (d *SteadyDiscovery) Gone(resource schema.GroupResource) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.known, resource)
}
