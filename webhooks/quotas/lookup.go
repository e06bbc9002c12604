// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package quotas

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/apiserver"
)

// +kubebuilder:rbac:groups=quota.openshift.io,resources=clusterresourcequotas,verbs=get
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get

var definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

var openShiftQuotas = schema.GroupVersionResource{
	Group: "quota.openshift.io", Version: "v1", Resource: "clusterresourcequotas",
}

// pageSize is how many objects are in memory for one list.
const pageSize = 500

// Discovery lists the resources that an API server serves.
type Discovery interface {
	ServerGroupsAndResourcesWithContext(ctx context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

// Lookup is a Cluster that asks the API server each time, but for quotas. The
// manager's RESTMapper would do so for unknown resources only, but not within the
// request's deadline, and can't distinguish an API that is gone from an API that
// is down.
type Lookup struct {
	discovery Discovery
	untyped   dynamic.Interface
	typed     kubernetes.Interface
	metadata  metadata.Interface
	cached    client.Reader
}

var _ Cluster = &Lookup{}

// NewLookup makes a Lookup. The typed client should ask for protobuf.
func NewLookup(
	discovery Discovery, untyped dynamic.Interface, typed kubernetes.Interface, metadata metadata.Interface, cached client.Reader,
) *Lookup {
	return &Lookup{discovery: discovery, untyped: untyped, typed: typed, metadata: metadata, cached: cached}
}

// Served implements Cluster.
func (l *Lookup) Served(ctx context.Context, resources []schema.GroupResource) (map[schema.GroupResource]Served, error) {
	_, lists, err := l.discovery.ServerGroupsAndResourcesWithContext(ctx)
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partial {
		return nil, fmt.Errorf("asking what is served: %w", err)
	}
	served, err := servedIn(lists)
	if err != nil {
		return nil, err
	}
	down := map[string]bool{} // API group -> whether a version of it can't be asked
	for version := range failed {
		down[version.Group] = true
	}
	for _, resource := range resources {
		if _, ok := served[resource]; !ok && !down[resource.Group] && l.undefined(ctx, resource) {
			served[resource] = Served{}
		}
	}
	return served, nil
}

// undefined reports whether nothing defines the resource. A resource that was
// defined a moment ago, often together with the quota, is served a moment later.
func (l *Lookup) undefined(ctx context.Context, resource schema.GroupResource) bool {
	_, err := l.untyped.Resource(definitions).Get(ctx, resource.String(), metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

func servedIn(lists []*metav1.APIResourceList) (map[schema.GroupResource]Served, error) {
	served := map[schema.GroupResource]Served{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("reading what is served: %w", err)
		}
		for _, resource := range list.APIResources {
			if strings.Contains(resource.Name, "/") {
				continue // a subresource has no objects
			}
			of := schema.GroupResource{Group: version.Group, Resource: resource.Name}
			served[of] = Served{Version: version.Version, Namespaced: resource.Namespaced}
		}
	}
	return served, nil
}

// Quotas implements Cluster.
func (l *Lookup) Quotas(ctx context.Context) ([]quotav1.ClusterResourceQuota, error) {
	list := &quotav1.ClusterResourceQuotaList{}
	if err := l.cached.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing quotas: %w", err)
	}
	return list.Items, nil
}

// Visit implements Cluster.
func (l *Lookup) Visit(
	ctx context.Context, resource schema.GroupVersionResource, namespace string, visit func(client.Object) error,
) error {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, next, err := l.page(ctx, resource, namespace, options)
		if err != nil {
			return fmt.Errorf("listing %s: %w", resource.GroupResource(), err)
		}
		err = meta.EachListItem(page, func(item runtime.Object) error {
			object, ok := item.(client.Object)
			if !ok {
				return fmt.Errorf("%T is no object", item)
			}
			return visit(object)
		})
		if err != nil {
			return fmt.Errorf("reading %s: %w", resource.GroupResource(), err)
		}
		if next == "" {
			return nil
		}
		options.Continue = next
	}
}

// page lists whole objects if evaluators look into them, and metadata of others.
//
//nolint:wrapcheck // the caller names the action
func (l *Lookup) page(
	ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions,
) (page runtime.Object, next string, err error) {
	_, lister := apiserver.Lister(l.typed, l.metadata, resource, namespace)
	page, err = lister.ListWithContext(ctx, options)
	if err != nil {
		return nil, "", err
	}
	list, err := meta.ListAccessor(page)
	if err != nil {
		return nil, "", err
	}
	return page, list.GetContinue(), nil
}

// OpenShiftSelector implements Cluster. If the API isn't served, the quota isn't
// found either.
func (l *Lookup) OpenShiftSelector(ctx context.Context, name string) (
	selector quotav1.ClusterResourceQuotaSelector, found bool, err error,
) {
	quota, err := l.untyped.Resource(openShiftQuotas).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return selector, false, nil
	}
	if err != nil {
		return selector, false, fmt.Errorf("reading OpenShift's ClusterResourceQuota %s: %w", name, err)
	}
	fields, _, err := unstructured.NestedMap(quota.Object, "spec", "selector")
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector)
	}
	if err != nil {
		return selector, false, fmt.Errorf("reading the selector of OpenShift's ClusterResourceQuota %s: %w", name, err)
	}
	return selector, true, nil
}
