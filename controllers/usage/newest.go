// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// newestTimeout bounds the list of all objects of one resource.
const newestTimeout = 2 * time.Minute

// NewestLimited tells how far a count must have come, as a resourceVersion for each
// resource, to include all objects that are stored now of what the quota limits; or only
// of some resources. For a resource that can't be listed it is ledger.Unlisted.
type NewestLimited func(
	ctx context.Context, quota *quotav1.ClusterResourceQuota, only ...schema.GroupResource,
) (map[schema.GroupResource]uint64, error)

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

// newestList is one list, in the version that is served.
type newestList struct {
	began time.Time
	// ended is closed once what follows is known.
	ended  chan struct{}
	newest uint64
	// in is the newest in each namespace.
	in map[string]uint64
	// served: something serves the resource, in namespaces.
	served bool
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

// Limited is a NewestLimited. What nothing serves has no objects, and is left out; of only, it
// is zero.
func (n *Newest) Limited(
	ctx context.Context, quota *quotav1.ClusterResourceQuota, only ...schema.GroupResource,
) (map[schema.GroupResource]uint64, error) {
	resources, newest := only, map[schema.GroupResource]uint64{}
	if len(only) == 0 {
		tracked, _ := n.evaluators.Resources(definition.Counted(quota.Spec))
		// Namespaces first: what a namespace brought is in a list that began after it had joined.
		resources = slices.AppendSeq([]schema.GroupResource{ledger.Namespaces}, maps.Keys(tracked))
	}
	for _, resource := range resources {
		list, err := n.of(ctx, resource, n.clock.Now())
		switch {
		case ctx.Err() != nil, err != nil && resource == ledger.Namespaces:
			return nil, err
		case err != nil:
			newest[resource] = ledger.Unlisted
		case list.served, len(only) > 0:
			newest[resource] = list.newest
		}
	}
	return newest, nil
}

// of returns a list that began at since or later, once it has ended.
func (n *Newest) of(ctx context.Context, resource schema.GroupResource, since time.Time) (*newestList, error) {
	for {
		list := n.list(resource, since) //nolint:contextcheck // it is shared with other callers
		select {
		case <-ctx.Done():
			return nil, ctx.Err() //nolint:wrapcheck // the caller knows what it waited for
		case <-list.ended:
		}
		if !list.began.Before(since) {
			return list, list.err
		}
	}
}

// list returns the list that is under way; if none is, the last one if it is new enough
// and found something, or else another one.
func (n *Newest) list(resource schema.GroupResource, since time.Time) *newestList {
	n.mu.Lock()
	defer n.mu.Unlock()
	last := n.lists[resource]
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
	n.lists[resource] = begun
	go func() {
		defer close(begun.ended)
		ctx, cancel := context.WithTimeout(n.ctx, newestTimeout)
		defer cancel()
		begun.err = n.look(ctx, resource, begun)
	}()
	return begun
}

// look lists a resource.
func (n *Newest) look(ctx context.Context, resource schema.GroupResource, begun *newestList) error {
	in := namespaces()
	if resource != ledger.Namespaces {
		version, served, err := n.served(ctx, resource)
		if err != nil || !served {
			return err
		}
		in = resource.WithVersion(version)
	}
	begun.served = true
	var err error
	begun.newest, begun.in, err = n.objects.Newest(ctx, in, metav1.NamespaceAll)
	return err
}

// served returns the version in which a resource is listed; false if nothing serves it, so
// that it has no objects.
func (n *Newest) served(ctx context.Context, resource schema.GroupResource) (version string, served bool, err error) {
	version, problem := resolve(ctx, n.discovery, resource, "")
	switch {
	case problem == nil:
		return version, true, nil
	case problem.Reason == quotav1.ReasonNotWatchable:
		return "", false, errors.New(problem.Message)
	default:
		return "", false, nil
	}
}
