// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/internal/reach"
)

// webhookConfigurations are what Forbidden calls the webhook configuration.
const webhookConfigurations = "validatingwebhookconfigurations"

// Ground is what quotas are planned on.
type Ground struct {
	Namespaces []metav1.PartialObjectMetadata
	Nodes      []corev1.Node
	// Configuration is the operator's webhook configuration; nil if there is none, or the user may not read it.
	Configuration *admissionregistrationv1.ValidatingWebhookConfiguration
	// Forbidden are the resources that the user may not read, sorted.
	Forbidden []string
}

// Ground reads the namespaces, the nodes and the webhook configuration.
func (r *Reader) Ground(ctx context.Context) (*Ground, error) {
	namespaces, nodes := &metav1.PartialObjectMetadataList{}, &corev1.NodeList{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	round := r.newRound()
	round.list("namespaces", namespaces)
	round.list("nodes", nodes)
	found := &Ground{}
	round.call(func(ctx context.Context) error {
		configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		err := r.client.Get(ctx, client.ObjectKey{Name: reach.ConfigurationName}, configuration)
		switch {
		case err == nil:
			found.Configuration = configuration
		case apierrors.IsForbidden(err):
			round.forbid(webhookConfigurations)
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("reading the webhook configuration: %w", err)
		}
		return nil
	})
	if err := round.wait(ctx); err != nil {
		return nil, err
	}
	found.Namespaces, found.Nodes, found.Forbidden = namespaces.Items, nodes.Items, round.forbidden()
	return found, nil
}

// Visited is how the objects of a resource were visited.
type Visited string

const (
	// VisitedAll: each object was visited.
	VisitedAll Visited = "all"
	// VisitForbidden: the user may not list the resource.
	VisitForbidden Visited = "forbidden"
	// VisitNotServed: the cluster doesn't serve the resource.
	VisitNotServed Visited = "not served"
)

const (
	// pageSize is how many objects are read by one call.
	pageSize = 500
	// mostNamespaces is of how many namespaces each is listed by itself. Of more, all namespaces are listed.
	mostNamespaces = 20
	// mostLists is how many lists are under way at once.
	mostLists = 8
)

// Visit calls visit for each object of a resource in these namespaces, and maybe for objects of others. The calls
// follow one another.
func Visit(
	ctx context.Context, cluster client.Client, resource schema.GroupResource, namespaces []string, visit func(client.Object) error,
) (Visited, error) {
	kind, err := cluster.RESTMapper().KindFor(resource.WithVersion(""))
	if meta.IsNoMatchError(err) {
		return VisitNotServed, nil
	}
	if err != nil {
		return "", fmt.Errorf("finding the kind of %s: %w", resource, err)
	}
	if len(namespaces) > mostNamespaces {
		namespaces = []string{metav1.NamespaceAll}
	}
	mu := sync.Mutex{} // guards what visit does
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(mostLists)
	for _, namespace := range namespaces {
		group.Go(func() error {
			return pages(ctx, cluster, listOf(resource, kind), namespace, func(object client.Object) error {
				mu.Lock()
				defer mu.Unlock()
				return visit(object)
			})
		})
	}
	switch err := group.Wait(); {
	case apierrors.IsForbidden(err):
		return VisitForbidden, nil
	case isNotServed(err):
		return VisitNotServed, nil
	case err != nil:
		return "", fmt.Errorf("reading %s: %w", resource, err)
	}
	return VisitedAll, nil
}

//nolint:wrapcheck // the caller says what was being done
func pages(
	ctx context.Context, cluster client.Reader, list client.ObjectList, namespace string, visit func(client.Object) error,
) error {
	for next := ""; ; {
		if err := cluster.List(ctx, list, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(next)); err != nil {
			return err
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			object, ok := item.(client.Object)
			if !ok {
				return fmt.Errorf("%T is no object", item)
			}
			return visit(object)
		})
		if err != nil {
			return err
		}
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

// listOf returns a list of what evaluators look into, and of metadata for all else.
func listOf(resource schema.GroupResource, kind schema.GroupVersionKind) client.ObjectList {
	switch resource {
	case corev1.Resource("pods"):
		return &corev1.PodList{}
	case corev1.Resource("services"):
		return &corev1.ServiceList{}
	case corev1.Resource("persistentvolumeclaims"):
		return &corev1.PersistentVolumeClaimList{}
	case resourceapi.Resource("resourceclaims"):
		return &resourceapi.ResourceClaimList{}
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}
