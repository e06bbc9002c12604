// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/sharedquota/shared-quota-operator/internal/counting"
)

const (
	// proveTimeout bounds one look at the objects of namespaces that joined. After as long, the count takes them as
	// they are.
	proveTimeout = 5 * time.Second
	// proveAgain is after which time there is another look, if one failed.
	proveAgain = time.Second
	// fewNamespaces are looked at each for itself. For more, all objects are listed at once.
	fewNamespaces = 8
	// looksAtOnce bounds the quotas whose few namespaces are looked at, at the same time. Any number share a list of all
	// objects: in groups of so many, the 500 quotas of a new leader took 38 lists.
	looksAtOnce = 16
)

// Versions tells in which version a resource is watched; empty if it isn't.
type Versions func(schema.GroupResource) string

// Joins find the objects of namespaces that came under a quota. The watch of
// namespaces may show one before the watch of a resource shows the objects that
// live in it. A ledger must not grant anything there by such a count: see
// counting.SettlementOf.
type Joins struct {
	*background
	*Parts
	versions Versions
	newest   *Newest
	atOnce   chan struct{}
}

// NewJoins makes Joins that work until ctx ends.
func NewJoins(ctx context.Context, parts *Parts, versions Versions, newest *Newest) *Joins {
	return &Joins{
		background: newBackground(ctx, parts.Clock), Parts: parts, versions: versions, newest: newest,
		atOnce: make(chan struct{}, looksAtOnce),
	}
}

// Follow looks, in the background, for the objects of namespaces that the quota's
// ledger waits for. Call it when the count or the ledger of a quota changes.
func (j *Joins) Follow(quota string) {
	if joined, resources := j.unseen(quota); len(joined) > 0 {
		// Afterwards it looks at namespaces that joined meanwhile, or again if it failed, for as long as the count
		// waits.
		j.begin(quota, func() { j.look(quota, joined, resources) }, func() { j.Follow(quota) })
	}
}

// unseen returns the joins that have not been looked at, and the resources that
// the quota is counted from.
func (j *Joins) unseen(quota string) (joined []counting.Joined, resources []schema.GroupResource) {
	known := j.Group.Current(quota)
	j.Count.Read(quota, func(view counting.View) {
		joined = slices.DeleteFunc(counting.Unproved(view, known), func(one counting.Joined) bool { return one.Seen })
		if len(joined) == 0 {
			return
		}
		for _, sources := range view.Target().Sources {
			resources = append(resources, sources...)
		}
	})
	slices.SortFunc(resources, compare)
	return joined, slices.Compact(resources)
}

func (j *Joins) look(quota string, joined []counting.Joined, resources []schema.GroupResource) {
	ctx, cancel := context.WithTimeout(j.ctx, proveTimeout)
	defer cancel()
	if err := j.prove(ctx, quota, joined, resources); err != nil && j.ctx.Err() == nil {
		log.FromContext(j.ctx).Error(err, "What namespaces brought that joined a quota can't be listed in time",
			"quota", quota, "namespaces", len(joined))
		j.rest(proveAgain)
	}
}

func (j *Joins) prove(ctx context.Context, quota string, joined []counting.Joined, resources []schema.GroupResource) error {
	many := len(joined) > fewNamespaces
	if !many {
		select {
		case j.atOnce <- struct{}{}:
			defer func() { <-j.atOnce }()
		case <-ctx.Done():
			return fmt.Errorf("waiting for other quotas' namespaces: %w", ctx.Err())
		}
	}
	brought := make([]map[schema.GroupResource]uint64, len(joined))
	for i := range brought {
		brought[i] = map[schema.GroupResource]uint64{}
	}
	for _, resource := range resources {
		newest, served, err := j.newestOf(ctx, resource, many)
		for i := 0; err == nil && served && i < len(joined); i++ {
			brought[i][resource], err = newest(joined[i].Namespace)
		}
		if err != nil {
			return fmt.Errorf("listing %s: %w", resource, err)
		}
	}
	for i, one := range joined {
		j.Count.Prove(quota, one, brought[i])
	}
	return nil
}

// newestOf returns the function that finds the resourceVersion of a namespace's
// newest object of a resource; false if nothing serves it.
func (j *Joins) newestOf(
	ctx context.Context, resource schema.GroupResource, many bool,
) (newest func(namespace string) (uint64, error), served bool, err error) {
	if many {
		list, err := j.newest.of(ctx, resource)
		if err != nil {
			return nil, false, err
		}
		return func(namespace string) (uint64, error) { return list.in[namespace], nil }, list.served, nil
	}
	in := resource.WithVersion(j.versions(resource))
	if in.Version == "" {
		if in, served, err = j.newest.served(ctx, resource.String()); err != nil || !served {
			return nil, false, err
		}
	}
	return func(namespace string) (uint64, error) {
		newest, _, err := j.newest.objects.Newest(ctx, in, namespace)
		return newest, err
	}, true, nil
}
