// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package quotas

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// +kubebuilder:rbac:groups=quota.openshift.io,resources=clusterresourcequotas,verbs=get
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get

var definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

var openShiftQuotas = schema.GroupVersionResource{
	Group: "quota.openshift.io", Version: "v1", Resource: "clusterresourcequotas",
}

// Discovery lists what an API server serves.
type Discovery interface {
	ServerGroupsAndResourcesWithContext(ctx context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

// Lookup is a Cluster that asks the API server each time. The manager's
// RESTMapper would do so for unknown resources only, but not within the request's
// deadline, and can't tell an API that is gone from one that is down.
type Lookup struct {
	discovery Discovery
	objects   dynamic.Interface
}

var _ Cluster = &Lookup{}

// NewLookup makes a Lookup.
func NewLookup(discovery Discovery, objects dynamic.Interface) *Lookup {
	return &Lookup{discovery: discovery, objects: objects}
}

// Places implements Cluster.
func (l *Lookup) Places(ctx context.Context, resources []schema.GroupResource) (map[schema.GroupResource]Place, error) {
	_, lists, err := l.discovery.ServerGroupsAndResourcesWithContext(ctx)
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partial {
		return nil, fmt.Errorf("asking what is served: %w", err)
	}
	served, err := placesOf(lists)
	if err != nil {
		return nil, err
	}
	down := map[string]bool{} // API group -> whether a version of it can't be asked
	for version := range failed {
		down[version.Group] = true
	}
	places := map[schema.GroupResource]Place{}
	for _, resource := range resources {
		place, ok := served[resource]
		switch {
		case ok:
			places[resource] = place
		case !down[resource.Group] && l.undefined(ctx, resource):
			places[resource] = Nowhere
		}
	}
	return places, nil
}

// undefined reports whether nothing defines the resource. What was defined a moment
// ago, often together with the quota, is served a moment later.
func (l *Lookup) undefined(ctx context.Context, resource schema.GroupResource) bool {
	_, err := l.objects.Resource(definitions).Get(ctx, resource.String(), metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

func placesOf(lists []*metav1.APIResourceList) (map[schema.GroupResource]Place, error) {
	places := map[schema.GroupResource]Place{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("reading what is served: %w", err)
		}
		for _, resource := range list.APIResources {
			place := OutsideNamespaces
			if resource.Namespaced {
				place = InNamespaces
			}
			places[version.WithResource(resource.Name).GroupResource()] = place
		}
	}
	return places, nil
}

// OpenShiftSelector implements Cluster. Where the API isn't served, the quota
// isn't found either.
func (l *Lookup) OpenShiftSelector(ctx context.Context, name string) (
	selector quotav1.ClusterResourceQuotaSelector, found bool, err error,
) {
	quota, err := l.objects.Resource(openShiftQuotas).Get(ctx, name, metav1.GetOptions{})
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
