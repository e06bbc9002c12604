// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/pager"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// lookupTimeout bounds the live read of one object.
const lookupTimeout = 10 * time.Second

// Lookup reads single objects from the API server.
type Lookup struct {
	client    metadata.Interface
	discovery Discovery
}

// NewLookup makes a Lookup.
func NewLookup(client metadata.Interface, discovery Discovery) *Lookup {
	return &Lookup{client: client, discovery: discovery}
}

// There reports whether the write that a reservation was made for has happened:
// the object lives with its UID and, for an update, in a later version than the
// update started from.
//
// The reservation names the API version of its request, which may no longer be
// served while the object lives. So an object is gone only if it isn't found in a
// version that is served, or if discovery says that none is.
func (l *Lookup) There(ctx context.Context, reservation ledger.Reservation) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := l.named(ctx, reservation)
	if err != nil {
		return false, fmt.Errorf("looking for %s %s/%s: %w",
			reservation.Resource.GroupResource(), reservation.Namespace, reservation.Name, err)
	}
	return slices.ContainsFunc(found, func(object metav1.PartialObjectMetadata) bool {
		return object.UID == reservation.UID && (reservation.From == "" ||
			ledger.ParseVersion(object.ResourceVersion) > ledger.ParseVersion(reservation.From))
	}), nil
}

// named returns the objects of a reservation's name: one or none.
func (l *Lookup) named(ctx context.Context, reservation ledger.Reservation) ([]metav1.PartialObjectMetadata, error) {
	found, err := l.namedIn(ctx, reservation, reservation.Resource.Version)
	if !apierrors.IsNotFound(err) {
		return found, err
	}
	served, err := l.discovery.Find(ctx, reservation.Resource.GroupResource())
	if err != nil || len(served.Versions) == 0 {
		return nil, err // without an error: its kind has gone, and all its objects with it
	}
	return l.namedIn(ctx, reservation, served.Versions[0])
}

// namedIn lists the objects of that name rather than getting the single one: of
// everything in a cluster, the operator may list and watch but not get. To get
// everything would include subresources, and a client that may get pods/exec runs
// commands in any pod.
//
// If the ledger has only a digest of the name, which would be too long for a request, all
// objects of the namespace are listed.
func (l *Lookup) namedIn(ctx context.Context, reservation ledger.Reservation, version string) ([]metav1.PartialObjectMetadata, error) {
	in := l.client.Resource(reservation.Resource.GroupResource().WithVersion(version)).Namespace(reservation.Namespace)
	options := metav1.ListOptions{}
	if !evaluation.IsShortened(reservation.Name) {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, reservation.Name).String()
	}
	var found []metav1.PartialObjectMetadata
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return in.List(ctx, options)
	})
	err := pages.EachListItem(ctx, options, func(object runtime.Object) error {
		if current, ok := object.(*metav1.PartialObjectMetadata); ok && evaluation.ShortName(current.Name) == reservation.Name {
			found = append(found, *current)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing it in version %s: %w", version, err)
	}
	return found, nil
}

// Generation returns the generation of a quota's spec as it is stored; zero if the quota
// is gone.
func (l *Lookup) Generation(ctx context.Context, quota string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := l.client.Resource(quotav1.GroupVersion.WithResource("clusterresourcequotas")).Get(ctx, quota, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("looking for quota %s: %w", quota, err)
	}
	return found.Generation, nil
}

func namespacesResource() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("namespaces")
}

// Version returns the resourceVersion of a live list of a resource: that of the newest write of anything.
func (l *Lookup) Version(ctx context.Context, resource schema.GroupVersionResource) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	list, err := l.client.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return 0, fmt.Errorf("looking for the version of %s: %w", resource.GroupResource(), err)
	}
	return ledger.ParseVersion(list.ResourceVersion), nil
}

// Newest returns the resourceVersion of the newest object of a resource, in a namespace or
// everywhere, and in each namespace; zero if there is none. A watch that has come so far has
// shown all there are.
func (l *Lookup) Newest(
	ctx context.Context, resource schema.GroupVersionResource, namespace string,
) (newest uint64, in map[string]uint64, err error) {
	in = map[string]uint64{}
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return l.client.Resource(resource).Namespace(namespace).List(ctx, options)
	})
	err = pages.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		known, ok := object.(metav1.Object)
		if !ok {
			return fmt.Errorf("%T has no metadata", object)
		}
		version := ledger.ParseVersion(known.GetResourceVersion())
		newest, in[known.GetNamespace()] = max(newest, version), max(in[known.GetNamespace()], version)
		return nil
	})
	if err != nil {
		return 0, nil, fmt.Errorf("looking for the newest of %s: %w", resource.GroupResource(), err)
	}
	return newest, in, nil
}
