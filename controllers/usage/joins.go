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
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/balance"
	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
)

const (
	// proveTimeout bounds one look at what namespaces brought.
	proveTimeout = 2 * time.Minute
	// proveAgain is after which time there is another look, if one failed, or if the count
	// has not come as far as it has shown.
	proveAgain = 5 * time.Second
	// fewNamespaces are looked at each for itself. For more, all objects are listed at once.
	fewNamespaces = 8
	// looksAtOnce bounds the quotas whose namespaces are looked at, at the same time.
	looksAtOnce = 16
)

// Versions tells in which version a resource is watched; empty if it isn't.
type Versions func(schema.GroupResource) string

// Joins find out what namespaces brought that came under a quota. The watch of namespaces
// may show one before the watch of a resource shows the objects that live in it. A ledger
// must not grant anything there by such a count: see balance.SettlementOf.
type Joins struct {
	// ctx ends all looks.
	ctx      context.Context //nolint:containedctx // the process's, for looks that outlive a reconcile
	clock    clock.PassiveClock
	count    *counting.Count
	group    *driver.Group
	versions Versions
	newest   *Newest
	atOnce   chan struct{}

	// mu guards what follows.
	mu sync.Mutex
	// quota name -> its last look
	looks map[string]look
}

// look is one look at what namespaces brought.
type look struct {
	underWay bool
	ended    time.Time
	// problem is why it failed; nil if it didn't.
	problem *Problem
}

// NewJoins makes Joins that work until ctx ends.
func NewJoins(
	ctx context.Context, clock clock.PassiveClock, count *counting.Count, group *driver.Group, versions Versions, newest *Newest,
) *Joins {
	return &Joins{
		ctx: ctx, clock: clock, count: count, group: group, versions: versions, newest: newest,
		atOnce: make(chan struct{}, looksAtOnce), looks: map[string]look{},
	}
}

// Follow looks, in the background, what namespaces brought of which the quota's ledger
// waits to know. It returns after which time to call it again; zero if there is nothing to
// wait for.
func (j *Joins) Follow(quota string) time.Duration {
	joined, resources := j.unproved(quota)
	j.mu.Lock()
	defer j.mu.Unlock()
	last := j.looks[quota]
	switch {
	case len(joined) == 0 && !last.underWay:
		delete(j.looks, quota)
		return 0
	case last.underWay:
		return proveAgain
	case j.clock.Since(last.ended) < proveAgain:
		if last.problem != nil {
			return proveAgain
		}
		// Those that were looked at get some time.
		joined = slices.DeleteFunc(joined, func(one counting.Joined) bool { return one.Seen })
	}
	if len(joined) > 0 {
		last.underWay = true
		j.looks[quota] = last
		go j.look(quota, joined, resources)
	}
	return proveAgain
}

// Forget drops what is known of a quota that is gone.
func (j *Joins) Forget(quota string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.looks, quota)
}

// Problems returns why namespaces that came under a quota aren't counted; nothing for what
// is about to be.
func (j *Joins) Problems(quota string) []Problem {
	j.mu.Lock()
	defer j.mu.Unlock()
	if problem := j.looks[quota].problem; problem != nil {
		return []Problem{*problem}
	}
	return nil
}

// unproved returns the joins that the quota's ledger waits for, and what it is counted from.
func (j *Joins) unproved(quota string) (joined []counting.Joined, resources []schema.GroupResource) {
	known := j.group.Current(quota)
	j.count.Read(quota, func(view counting.View) {
		joined = balance.Unproved(view, known)
		for _, sources := range view.Definition().Sources {
			resources = append(resources, sources...)
		}
	})
	slices.SortFunc(resources, compare)
	return joined, slices.Compact(resources)
}

func (j *Joins) look(quota string, joined []counting.Joined, resources []schema.GroupResource) {
	ctx, cancel := context.WithTimeout(j.ctx, proveTimeout)
	defer cancel()
	problem := j.prove(ctx, quota, joined, resources)
	if problem != nil && j.ctx.Err() == nil {
		log.FromContext(j.ctx).Info("What namespaces brought that joined a quota can't be looked up. They aren't counted until it is",
			"quota", quota, "namespaces", len(joined), "problem", problem.Message)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.looks[quota] = look{ended: j.clock.Now(), problem: problem}
}

func (j *Joins) prove(ctx context.Context, quota string, joined []counting.Joined, resources []schema.GroupResource) *Problem {
	select {
	case j.atOnce <- struct{}{}:
		defer func() { <-j.atOnce }()
	case <-ctx.Done():
		return nil
	}
	brought := make([]map[schema.GroupResource]uint64, len(joined))
	for i := range brought {
		brought[i] = map[schema.GroupResource]uint64{}
	}
	for _, resource := range resources {
		newest, served, err := j.newestOf(ctx, resource, len(joined) > fewNamespaces)
		for i := 0; err == nil && served && i < len(joined); i++ {
			brought[i][resource], err = newest(joined[i].Namespace)
		}
		if err != nil {
			return notBrought(resource, err)
		}
	}
	for i, one := range joined {
		j.count.Prove(quota, one, brought[i])
	}
	return nil
}

// newestOf returns what tells the resourceVersion of a namespace's newest object of a
// resource; false if nothing serves it.
func (j *Joins) newestOf(
	ctx context.Context, resource schema.GroupResource, many bool,
) (newest func(namespace string) (uint64, error), served bool, err error) {
	if many {
		list, err := j.newest.of(ctx, resource, j.clock.Now())
		if err != nil {
			return nil, false, err
		}
		return func(namespace string) (uint64, error) { return list.in[namespace], nil }, list.served, nil
	}
	version := j.versions(resource)
	if version == "" {
		found, problem := resolve(ctx, j.newest.discovery, resource, "")
		switch {
		case problem != nil && problem.Reason == quotav1.ReasonNotWatchable:
			return nil, false, errors.New(problem.Message)
		case problem != nil:
			return nil, false, nil
		}
		version = found
	}
	return func(namespace string) (uint64, error) {
		newest, _, err := j.newest.objects.Newest(ctx, resource.WithVersion(version), namespace)
		return newest, err
	}, true, nil
}
