// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/apiserver"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// newestTimeout bounds the list of all objects of one resource.
const newestTimeout = 2 * time.Minute

// NewestLimited returns how far a count must have come to include all objects of the limited resources that are stored
// now; or only of some resources.
type NewestLimited func(
	ctx context.Context, quota *quotav1.ClusterResourceQuota, only ...schema.GroupResource,
) (ledger.Newest, error)

// Newest finds how far a count must have come to include all objects that are
// stored. Callers share its lists: each gets the result of a list that began
// after its call.
type Newest struct {
	evaluators *evaluation.Evaluators
	discovery  Discovery
	objects    *Lookup
	// lists are of resources, and versions those of lists.
	lists    *apiserver.Reads[newestList]
	versions *apiserver.Reads[uint64]
}

// newestList is the result of a list in the served version.
type newestList struct {
	newest uint64
	// in is the newest in each namespace.
	in map[string]uint64
	// served: something serves the resource, in namespaces.
	served bool
}

// NewNewest makes a Newest.
func NewNewest(evaluators *evaluation.Evaluators, discovery Discovery, objects *Lookup) *Newest {
	n := &Newest{evaluators: evaluators, discovery: discovery, objects: objects}
	n.lists = apiserver.NewReads("the list of", n.list).Within(newestTimeout)
	n.versions = apiserver.NewReads("the version of", n.version).Within(lookupTimeout)
	return n
}

// Limited is a NewestLimited. A resource that isn't served has no objects, and is left out; of only, it is zero.
func (n *Newest) Limited(
	ctx context.Context, quota *quotav1.ClusterResourceQuota, only ...schema.GroupResource,
) (ledger.Newest, error) {
	resources := only
	newest := ledger.Newest{Versions: map[schema.GroupResource]uint64{}, Unlisted: sets.New[schema.GroupResource]()}
	if len(only) == 0 {
		tracked, _ := n.evaluators.Resources(quota.Spec.Quota.Hard)
		// Namespaces first: the objects of a namespace are in a list that began after it had joined.
		resources = slices.AppendSeq([]schema.GroupResource{ledger.Namespaces}, maps.Keys(tracked))
	}
	for _, resource := range resources {
		list, err := n.of(ctx, resource)
		switch {
		case ctx.Err() != nil, err != nil && resource == ledger.Namespaces:
			return ledger.Newest{}, err
		case err != nil:
			newest.Unlisted.Insert(resource)
		case list.served, len(only) > 0:
			newest.Versions[resource] = list.newest
		}
	}
	return newest, nil
}

// Version returns the resourceVersion of a list of a resource that began after the call; zero if nothing serves it. An
// API server lists from memory, if that is at least as new as etcd.
func (n *Newest) Version(ctx context.Context, resource schema.GroupResource) (uint64, error) {
	return n.versions.Get(ctx, resource.String())
}

func (n *Newest) version(ctx context.Context, key string) (uint64, error) {
	in, served, err := n.served(ctx, key)
	if err != nil || !served {
		return 0, err
	}
	return n.objects.Version(ctx, in)
}

// of returns a list that began after the call, once it has ended.
func (n *Newest) of(ctx context.Context, resource schema.GroupResource) (newestList, error) {
	return n.lists.Get(ctx, resource.String())
}

func (n *Newest) list(ctx context.Context, key string) (list newestList, err error) {
	in, served, err := n.served(ctx, key)
	if err != nil || !served {
		return newestList{}, err
	}
	list.served = true
	list.newest, list.in, err = n.objects.Newest(ctx, in, metav1.NamespaceAll)
	return list, err
}

// served returns in which version a resource is listed; false if nothing serves it, so that it has no objects.
func (n *Newest) served(ctx context.Context, key string) (in schema.GroupVersionResource, served bool, err error) {
	resource := schema.ParseGroupResource(key)
	if resource == ledger.Namespaces {
		return namespacesResource(), true, nil
	}
	version, problem := resolve(ctx, n.discovery, resource, "")
	switch {
	case problem == nil:
		return resource.WithVersion(version), true, nil
	case problem.Reason == quotav1.ReasonNotWatchable:
		return in, false, errors.New(problem.Message)
	default:
		return in, false, nil
	}
}
