// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

const (
	// lookUpAgain is the least time between two attempts to find the version of a
	// resource. It doubles with each attempt after which the resource is still
	// not watched, up to lookUpLatest: a resource that is served again is found
	// within that time, even without an event.
	lookUpAgain  = time.Second
	lookUpLatest = 10 * time.Second
	// lookUpsAtOnce bounds the resources whose versions are looked up at the same time.
	lookUpsAtOnce = 10
)

// keeper keeps the watch of one resource: it finds the version to watch it in,
// and another one if that version is no longer served. The counted objects of the
// resource stay until the list in the other version replaces them.
//
// All of it is guarded by watches.mu.
type keeper struct {
	watches  *Watches
	resource schema.GroupResource
	// ctx ends with the keeper, and its watch with it.
	ctx context.Context //nolint:containedctx // of the watch that it owns
	end context.CancelFunc
	// outdated: the counted objects were measured before something changed that isn't in the objects.
	outdated bool
	// attempts is how often the version was looked up in a row, and last is when.
	attempts int
	last     time.Time
	// problem is why the resource can't be counted; nil if it can, or if that is
	// still unknown.
	problem *Problem
	// watching feeds the count; nil if the resource isn't watched.
	watching *watching
}

// watching is one run of a reflector.
type watching struct {
	version string
	cancel  context.CancelFunc
	store   *objectStore
}

// lookUp looks up the version to watch a resource in.
func (w *Watches) lookUp(resource schema.GroupResource) {
	k := w.begin(resource)
	if k == nil {
		return // no quota limits it any more
	}
	version, problem := resolve(k.ctx, w.Discovery, resource, w.Version(resource))
	w.tell(k.take(version, problem))
}

// begin begins an attempt.
func (w *Watches) begin(resource schema.GroupResource) *keeper {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.keepers[resource]
	if k == nil {
		return nil
	}
	if w.Clock.Since(k.last) >= 2*lookUpLatest {
		k.attempts = 0 // all was well in between
	}
	k.attempts++
	k.last = w.Clock.Now()
	return k
}

// resolve finds the version to watch a resource in: the current one, if that is
// still served.
func resolve(ctx context.Context, discovery Discovery, resource schema.GroupResource, current string) (string, *Problem) {
	served, err := discovery.Find(ctx, resource)
	if err != nil {
		return "", unknown(resource, err)
	}
	switch {
	case len(served.Versions) == 0:
		return "", notServed(resource)
	case !served.Namespaced:
		return "", clusterScoped(resource)
	case slices.Contains(served.Versions, current):
		return current, nil
	default:
		return served.Versions[0], nil
	}
}

// take takes the outcome of a look-up. It returns the quotas to tell of it.
func (k *keeper) take(version string, problem *Problem) []string {
	k.watches.mu.Lock()
	defer k.watches.mu.Unlock()
	switch {
	case k.ctx.Err() != nil:
		return nil
	case problem == nil:
		return k.lockedWatchIn(version)
	default:
		k.lockedLookUp()
		return k.lockedFail(problem)
	}
}

// lockedWatchIn watches the resource in a version, unless it already does and that is up to date.
func (k *keeper) lockedWatchIn(version string) []string {
	if k.watching != nil && k.watching.version == version && !k.outdated {
		return nil
	}
	k.outdated = false
	k.lockedStop()
	w := k.watches
	ctx, cancel := context.WithCancel(k.ctx)
	begun := &watching{
		version: version, cancel: cancel,
		store: &objectStore{clock: w.Clock, source: w.Count.Source(k.resource)},
	}
	k.watching = begun
	reflector := objectReflector(w.Events, k.resource.WithVersion(version), begun.store,
		func(err error) { w.tell(k.report(begun, err)) })
	w.running.Go(func() { reflector.RunWithContext(ctx) })
	if k.problem == nil || k.problem.Reason == quotav1.ReasonNotWatchable {
		return nil // the first list tells the machines
	}
	k.problem = nil
	return w.lockedWanting(k.resource)
}

// lockedFail takes note that the resource can't be watched. A watch that works is
// not ended for it: discovery may fail or be late. Nor does a failure of
// discovery say more than its last answer.
func (k *keeper) lockedFail(problem *Problem) []string {
	uncertain := problem.Reason == quotav1.ReasonNotWatchable
	if k.watching != nil || uncertain && k.problem != nil {
		return nil
	}
	same := k.problem != nil && k.problem.Reason == problem.Reason
	k.problem = problem
	if !uncertain {
		// No object of it can be read or written: nothing of it is used.
		k.watches.Count.DropSource(k.resource)
	}
	if same {
		return nil
	}
	return k.watches.lockedWanting(k.resource)
}

// report takes the outcome of an attempt to list or watch the resource, and
// returns the quotas to tell of it. A version that is not found is not tried
// again: another look-up decides how to go on.
func (k *keeper) report(from *watching, err error) []string {
	k.watches.mu.Lock()
	defer k.watches.mu.Unlock()
	if k.watching != from {
		return nil // by a watch that has been replaced
	}
	changed := (k.problem == nil) != (err == nil)
	k.problem = nil
	if err != nil {
		k.problem = notWatchable(k.resource, err)
	}
	if apierrors.IsNotFound(err) {
		k.lockedStop()
		k.lockedLookUp()
	}
	if !changed {
		return nil
	}
	return k.watches.lockedWanting(k.resource)
}

func (k *keeper) lockedStop() {
	if k.watching == nil {
		return
	}
	k.watching.cancel()
	k.watching.store.close()
	k.watching = nil
}

// lockedLookUp has the version looked up, as soon as it may be.
func (k *keeper) lockedLookUp() {
	k.watches.due.AddAfter(k.resource, pause(k.attempts)-k.watches.Clock.Since(k.last))
}

// pause is the least time between an attempt, after so many, and the next.
func pause(attempts int) time.Duration {
	after := lookUpAgain
	for i := 1; i < attempts && after < lookUpLatest; i++ {
		after *= 2
	}
	return min(after, lookUpLatest)
}
