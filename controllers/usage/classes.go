// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	resourceapi "k8s.io/api/resource/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// Classes follow which device class offers which extended resource. The use of a
// claim depends on that.
type Classes struct {
	logger logr.Logger
	// offers never change: others take their place.
	offers atomic.Pointer[extendedresourcecache.ExtendedResourceCache]
	// synced reports whether all classes are known; nil if the cluster serves none.
	synced func() bool

	mu sync.Mutex
	// name -> class
	known map[string]*resourceapi.DeviceClass
	// changed is called when a class changes its offer; nil for no call.
	changed func()
}

// newClasses makes Classes that know of none yet.
func newClasses(logger logr.Logger) *Classes {
	return &Classes{logger: logger, known: map[string]*resourceapi.DeviceClass{}}
}

// follow keeps in memory which device class offers which extended resource.
func follow(ctx context.Context, mgr ctrl.Manager) (*Classes, error) {
	informer, err := mgr.GetCache().GetInformer(ctx, &resourceapi.DeviceClass{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("starting to watch: %w", err)
	}
	classes := newClasses(mgr.GetLogger())
	registration, err := informer.AddEventHandler(classes)
	if err != nil {
		return nil, fmt.Errorf("taking events: %w", err)
	}
	classes.synced = registration.HasSynced
	return classes, nil
}

// Offers returns the offers of the classes of this moment; nil if none is known.
func (c *Classes) Offers() *extendedresourcecache.ExtendedResourceCache { return c.offers.Load() }

// Synced reports whether all device classes are known. Before that, claims can't be judged.
func (c *Classes) Synced() bool { return c.synced == nil || c.synced() }

// OnChange has the function called whenever a class offers something else. It must not block.
func (c *Classes) OnChange(changed func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = changed
}

// OnAdd implements toolscache.ResourceEventHandler.
func (c *Classes) OnAdd(object any, _ bool) {
	if class, ok := object.(*resourceapi.DeviceClass); ok {
		c.set(class.Name, class)
	}
}

// OnUpdate implements toolscache.ResourceEventHandler.
func (c *Classes) OnUpdate(_, object any) { c.OnAdd(object, false) }

// OnDelete implements toolscache.ResourceEventHandler.
func (c *Classes) OnDelete(object any) {
	if unseen, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = unseen.Obj
	}
	if class, ok := object.(*resourceapi.DeviceClass); ok {
		c.set(class.Name, nil)
	}
}

// set takes the present version of a class; nil if it is gone.
func (c *Classes) set(name string, class *resourceapi.DeviceClass) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.known[name]
	if class == nil {
		delete(c.known, name)
	} else {
		c.known[name] = class
	}
	if before != nil && class != nil && ptr.Equal(before.Spec.ExtendedResourceName, class.Spec.ExtendedResourceName) {
		return
	}
	offers := extendedresourcecache.NewExtendedResourceCache(c.logger)
	for _, known := range slices.Sorted(maps.Keys(c.known)) {
		offers.OnAdd(c.known[known], true)
	}
	c.offers.Store(offers)
	if c.changed != nil {
		c.changed()
	}
}
