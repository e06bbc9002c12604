// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

var errNotRunning = errors.New("watches don't run")

// Problem says why a resource can't be counted.
type Problem struct {
	Resource schema.GroupResource
	// Reason is one of the condition reasons of the API.
	Reason string
	// Message is for people.
	Message string
}

// Watches keeps a watch on each resource that some quota limits, from when the
// first quota names it until the last one no longer does.
//
// Each resource has a keeper, which finds the version to watch it in. Nothing here
// waits for the network with the lock held.
type Watches struct {
	*Parts

	// mu guards the fields below, and everything in keepers.
	mu sync.Mutex
	// ctx is the context that all watches end with; nil unless Start runs.
	ctx     context.Context //nolint:containedctx // of the Runnable, for the watches that it owns
	running sync.WaitGroup
	// due has the resources whose version must be looked up; nil unless Start runs.
	due workqueue.TypedDelayingInterface[schema.GroupResource]
	// quota name -> the resources that it needs
	wanted map[string][]schema.GroupResource
	// Invariant: there is one for each resource that is wanted, and no other.
	// resource -> keeps its watch
	keepers map[schema.GroupResource]*keeper
}

// NewWatches makes a Runnable for the manager. It calls Parts.OnChange with the quotas whose resources have become
// available or unavailable.
func NewWatches(parts *Parts) *Watches {
	return &Watches{Parts: parts, wanted: map[string][]schema.GroupResource{}, keepers: map[schema.GroupResource]*keeper{}}
}

// Start watches namespaces, and the wanted resources, until ctx ends. Only the
// leader calls it.
func (w *Watches) Start(ctx context.Context) error {
	namespaces := namespaceReflector(w.Events, namespaceStore(w.Clock, w.Count))
	due := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[schema.GroupResource]{Clock: w.Clock})
	w.mu.Lock()
	w.ctx, w.due = ctx, due
	w.running.Go(func() { namespaces.RunWithContext(ctx) })
	w.mu.Unlock()
	for range lookUpsAtOnce {
		w.running.Go(func() { //nolint:contextcheck // each look-up ends with its keeper
			for resource, ended := due.Get(); !ended; resource, ended = due.Get() {
				w.lookUp(resource)
				due.Done(resource)
			}
		})
	}
	<-ctx.Done()
	w.mu.Lock()
	w.ctx = nil
	w.mu.Unlock()
	due.ShutDown()
	w.running.Wait()
	return nil
}

// Want watches the resources that a quota limits, and no longer the ones that it
// alone limited before.
//
// It doesn't wait for the API server. A resource that is new begins to be looked
// up in the background, and counts as served, and as not counted yet, until that
// has come to an end. If it can't be watched, that is a Problem and not an error,
// and the function OnChange is called with the quota.
func (w *Watches) Want(quota string, resources []schema.GroupResource) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx == nil {
		return errNotRunning
	}
	w.wanted[quota] = resources
	for _, resource := range resources {
		if _, kept := w.keepers[resource]; !kept {
			w.lockedKeep(resource)
		}
	}
	w.lockedRelease()
	return nil
}

// Forget ends the watches that only this quota needed.
func (w *Watches) Forget(quota string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.wanted, quota)
	w.lockedRelease()
}

// Counted tells that a ledger has counted a resource, so that it isn't taken for gone soon.
func (w *Watches) Counted(resource schema.GroupResource) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Discovery.Counted(resource)
	if keeper, kept := w.keepers[resource]; kept && keeper.problem != nil && keeper.problem.Reason == quotav1.ReasonNotServed {
		keeper.problem = nil // it was said before that was known
		keeper.lockedLookUp()
	}
}

// Redefined is called when a CustomResourceDefinition has come, changed or gone, or is going.
// The resource that it defines is looked up again, if a quota limits it.
func (w *Watches) Redefined(resource schema.GroupResource, going bool) {
	if going {
		w.Discovery.Gone(resource)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if keeper, kept := w.keepers[resource]; kept {
		keeper.attempts = 0
		keeper.lockedLookUp()
	}
}

// Remeasure is called when objects of a resource may use something else, though they have not changed: they are listed
// again. The earlier count stays until then.
func (w *Watches) Remeasure(resource schema.GroupResource) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if keeper, kept := w.keepers[resource]; kept {
		keeper.outdated = true
		keeper.lockedLookUp()
	}
}

// Problems returns the problems of the resources that a quota limits, sorted.
func (w *Watches) Problems(quota string) []Problem {
	w.mu.Lock()
	defer w.mu.Unlock()
	var problems []Problem
	for _, resource := range w.wanted[quota] {
		if problem := w.keepers[resource].problem; problem != nil {
			problems = append(problems, *problem)
		}
	}
	slices.SortFunc(problems, func(a, b Problem) int { return compare(a.Resource, b.Resource) })
	return problems
}

// Served reports whether the cluster serves the resource in namespaces. As long
// as that isn't known, it is true: a resource that is served and not counted yet
// is never taken for complete. Call it after Want.
func (w *Watches) Served(resource schema.GroupResource) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	keeper, kept := w.keepers[resource]
	return !kept || keeper.problem == nil || keeper.problem.Reason == quotav1.ReasonNotWatchable
}

// Version returns the version in which a resource is watched; empty if it isn't.
func (w *Watches) Version(resource schema.GroupResource) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if keeper, kept := w.keepers[resource]; kept && keeper.watching != nil {
		return keeper.watching.version
	}
	return ""
}

func (w *Watches) lockedKeep(resource schema.GroupResource) {
	ctx, end := context.WithCancel(w.ctx)
	w.keepers[resource] = &keeper{watches: w, resource: resource, ctx: ctx, end: end}
	w.due.Add(resource)
}

// lockedRelease ends the watches that no quota wants.
func (w *Watches) lockedRelease() {
	needed := map[schema.GroupResource]bool{}
	for _, resources := range w.wanted {
		for _, resource := range resources {
			needed[resource] = true
		}
	}
	maps.DeleteFunc(w.keepers, func(resource schema.GroupResource, keeper *keeper) bool {
		if needed[resource] {
			return false
		}
		keeper.end()
		keeper.lockedStop()
		w.Count.DropSource(resource)
		return true
	})
}

// tell reports quotas whose resources have become available or unavailable.
func (w *Watches) tell(quotas []string) {
	if len(quotas) > 0 {
		w.OnChange(quotas)
	}
}

func (w *Watches) lockedWanting(resource schema.GroupResource) []string {
	var quotas []string
	for quota, resources := range w.wanted {
		if slices.Contains(resources, resource) {
			quotas = append(quotas, quota)
		}
	}
	return quotas
}

// compare orders resources by their names.
func compare(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) }
