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
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// newestTimeout bounds the list of all objects of one resource.
const newestTimeout = 2 * time.Minute

// NewestLimited tells how far a count must have come, as a resourceVersion for each
// resource, to include all objects that are stored now of what the quota limits.
type NewestLimited func(ctx context.Context, quota *quotav1.ClusterResourceQuota) (map[schema.GroupResource]uint64, error)

// Newest tells how far a count must have come to include all objects that are stored.
// Callers share its lists: each gets what a list found that began after its call, and of
// each resource one list is under way at a time.
type Newest struct {
	// ctx ends all lists.
	ctx        context.Context //nolint:containedctx // the process's, for lists that callers share
	clock      clock.PassiveClock
	evaluators *evaluation.Evaluators
	discovery  Discovery
	objects    *Lookup

	// mu guards what follows.
	mu sync.Mutex
	// resource -> the last list of it that began
	lists map[schema.GroupResource]*newestList
}

// newestList is one list.
type newestList struct {
	began time.Time
	// ended is closed once what follows is known.
	ended  chan struct{}
	newest uint64
	err    error
}

// NewNewest makes a Newest that works until ctx ends.
func NewNewest(
	ctx context.Context, clock clock.PassiveClock, evaluators *evaluation.Evaluators, discovery Discovery, objects *Lookup,
) *Newest {
	return &Newest{
		ctx: ctx, clock: clock, evaluators: evaluators, discovery: discovery, objects: objects,
		lists: map[schema.GroupResource]*newestList{},
	}
}

// Limited is a NewestLimited. What nothing serves has no objects, and is left out.
func (n *Newest) Limited(ctx context.Context, quota *quotav1.ClusterResourceQuota) (map[schema.GroupResource]uint64, error) {
	since := n.clock.Now()
	tracked, _ := n.evaluators.Resources(quota.Spec.Quota.Hard)
	newest := map[schema.GroupResource]uint64{}
	for resource := range maps.Keys(tracked) {
		version, problem := resolve(ctx, n.discovery, resource, "")
		switch {
		case problem != nil && problem.Reason == quotav1.ReasonNotWatchable:
			return nil, errors.New(problem.Message)
		case problem != nil:
			continue
		}
		var err error
		if newest[resource], err = n.of(ctx, resource.WithVersion(version), since); err != nil {
			return nil, err
		}
	}
	var err error
	newest[ledger.Namespaces], err = n.of(ctx, namespaces(), since)
	return newest, err
}

// of returns what a list found that began at since or later.
func (n *Newest) of(ctx context.Context, resource schema.GroupVersionResource, since time.Time) (uint64, error) {
	for {
		list := n.list(resource, since) //nolint:contextcheck // it is shared with other callers
		select {
		case <-ctx.Done():
			return 0, ctx.Err() //nolint:wrapcheck // the caller knows what it waited for
		case <-list.ended:
		}
		if !list.began.Before(since) {
			return list.newest, list.err
		}
	}
}

// list returns the list that is under way; if none is, the last one if it is new enough
// and found something, or else another one.
func (n *Newest) list(resource schema.GroupVersionResource, since time.Time) *newestList {
	n.mu.Lock()
	defer n.mu.Unlock()
	last := n.lists[resource.GroupResource()]
	if last != nil {
		select {
		case <-last.ended:
			if last.err == nil && !last.began.Before(since) {
				return last
			}
		default:
			return last
		}
	}
	begun := &newestList{began: n.clock.Now(), ended: make(chan struct{})}
	n.lists[resource.GroupResource()] = begun
	go func() {
		defer close(begun.ended)
		ctx, cancel := context.WithTimeout(n.ctx, newestTimeout)
		defer cancel()
		begun.newest, begun.err = n.objects.Newest(ctx, resource)
	}()
	return begun
}
