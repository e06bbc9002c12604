/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package usage

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/counting"
)

var errNotStarted = errors.New("watches have not been started yet")

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
type Watches struct {
	clock   clock.PassiveClock
	mapper  meta.RESTMapper
	events  EventSource
	count   *counting.Count
	changed func(quotas []string)

	// mu guards what follows.
	mu sync.Mutex
	// ctx is the one that all watches end with; nil before Start.
	ctx     context.Context //nolint:containedctx // of the Runnable, for the watches that it owns
	running sync.WaitGroup
	// quota name -> what it needs
	wanted map[string][]schema.GroupResource
	// resource -> ends its watch
	watching map[schema.GroupResource]context.CancelFunc
	// resource -> what is wrong with it
	problems map[schema.GroupResource]Problem
}

// NewWatches makes a Runnable for the manager. The function changed is told of
// the quotas whose resources have become available or unavailable.
func NewWatches(
	clock clock.PassiveClock, mapper meta.RESTMapper, events EventSource,
	count *counting.Count, changed func(quotas []string),
) *Watches {
	return &Watches{
		clock: clock, mapper: mapper, events: events, count: count, changed: changed,
		wanted:   map[string][]schema.GroupResource{},
		watching: map[schema.GroupResource]context.CancelFunc{},
		problems: map[schema.GroupResource]Problem{},
	}
}

// NeedLeaderElection is true: only the leader counts.
func (*Watches) NeedLeaderElection() bool { return true }

// Start watches namespaces, and what is wanted, until ctx ends.
func (w *Watches) Start(ctx context.Context) error {
	w.mu.Lock()
	w.ctx = ctx
	w.lockedRun(ctx, namespaceReflector(w.events, &namespaceStore{clock: w.clock, count: w.count}))
	w.mu.Unlock()
	<-ctx.Done()
	w.running.Wait()
	return nil
}

// Want watches what a quota limits, and no longer what it alone limited before.
// A resource that can't be watched is a Problem and not an error.
func (w *Watches) Want(quota string, resources []schema.GroupResource) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx == nil {
		return errNotStarted
	}
	w.wanted[quota] = resources
	for _, resource := range resources {
		if _, running := w.watching[resource]; !running {
			w.lockedWatch(resource)
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

// Problems returns what can't be counted of what a quota limits, sorted.
func (w *Watches) Problems(quota string) []Problem {
	w.mu.Lock()
	defer w.mu.Unlock()
	var problems []Problem
	for _, resource := range w.wanted[quota] {
		if problem, bad := w.problems[resource]; bad {
			problems = append(problems, problem)
		}
	}
	slices.SortFunc(problems, func(a, b Problem) int {
		return strings.Compare(a.Resource.String(), b.Resource.String())
	})
	return problems
}

// Served tells whether the cluster serves the resource in namespaces. Call it
// after Want.
func (w *Watches) Served(resource schema.GroupResource) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	problem, bad := w.problems[resource]
	return !bad || problem.Reason == quotav1.ReasonNotWatchable
}

// Versions returns what a quota limits of what the cluster serves, in the versions
// to read it in.
func (w *Watches) Versions(quota string) ([]schema.GroupVersionResource, error) {
	w.mu.Lock()
	resources := w.wanted[quota]
	w.mu.Unlock()
	var versions []schema.GroupVersionResource
	for _, resource := range resources {
		version, problem := w.resolve(resource)
		switch {
		case problem == nil:
			versions = append(versions, version)
		case problem.Reason == quotav1.ReasonNotWatchable:
			return nil, errors.New(problem.Message)
		}
	}
	return versions, nil
}

// Incomplete returns the quotas that limit a resource that isn't watched.
func (w *Watches) Incomplete() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var quotas []string
	for quota, resources := range w.wanted {
		if slices.ContainsFunc(resources, func(r schema.GroupResource) bool { return w.watching[r] == nil }) {
			quotas = append(quotas, quota)
		}
	}
	return quotas
}

func (w *Watches) lockedWatch(resource schema.GroupResource) {
	version, problem := w.resolve(resource)
	if problem != nil {
		w.problems[resource] = *problem
		return
	}
	delete(w.problems, resource)
	ctx, cancel := context.WithCancel(w.ctx)
	w.watching[resource] = cancel
	store := &objectStore{clock: w.clock, source: w.count.Source(resource)}
	w.lockedRun(ctx, objectReflector(w.events, version, store, func(err error) { w.report(resource, err) }))
}

func (w *Watches) lockedRun(ctx context.Context, reflector runner) {
	w.running.Go(func() { reflector.RunWithContext(ctx) })
}

// lockedRelease ends the watches that no quota wants.
func (w *Watches) lockedRelease() {
	needed := map[schema.GroupResource]bool{}
	for _, resources := range w.wanted {
		for _, resource := range resources {
			needed[resource] = true
		}
	}
	for resource, cancel := range w.watching {
		if !needed[resource] {
			cancel()
			delete(w.watching, resource)
			w.count.DropSource(resource)
		}
	}
	maps.DeleteFunc(w.problems, func(resource schema.GroupResource, _ Problem) bool { return !needed[resource] })
}

// report keeps the outcome of the last attempt to list or watch a resource.
func (w *Watches) report(resource schema.GroupResource, err error) {
	w.mu.Lock()
	_, was := w.problems[resource]
	_, watching := w.watching[resource]
	if !watching || was == (err != nil) {
		w.mu.Unlock()
		return
	}
	delete(w.problems, resource)
	if err != nil {
		w.problems[resource] = notWatchable(resource, err)
	}
	touched := w.lockedWanting(resource)
	w.mu.Unlock()
	w.changed(touched)
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
