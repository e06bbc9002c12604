// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// discoveryTimeout bounds how long the API server may take to say in which
// versions it serves a resource.
const discoveryTimeout = 10 * time.Second

var (
	errNoGroups    = errors.New("the API server names no API group at all")
	errNoResources = errors.New("it names none")
)

// Served says in which versions a cluster serves a resource. The zero value
// means that it doesn't serve the resource.
type Served struct {
	// Versions of the resource's API group, the preferred one first.
	Versions []string
	// Namespaced: the resource lives in namespaces.
	Namespaced bool
}

// Discovery finds the resources that the cluster serves at this moment. An error
// means that the answer is unknown; it never means that the resource isn't
// served.
type Discovery interface {
	Find(ctx context.Context, resource schema.GroupResource) (Served, error)
}

// LiveDiscovery is a Discovery that asks the API server each time. A RESTMapper
// doesn't do: the manager's never forgets a version that it has seen, as long as
// it can answer from memory.
type LiveDiscovery struct {
	client *discovery.DiscoveryClient
}

var _ Discovery = &LiveDiscovery{}

// NewLiveDiscovery makes a LiveDiscovery.
func NewLiveDiscovery(config *rest.Config, client *http.Client) (*LiveDiscovery, error) {
	asking, err := discovery.NewDiscoveryClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("making the client of discovery: %w", err)
	}
	asking.UseLegacyDiscovery = true // a document of all resources is much longer
	return &LiveDiscovery{client: asking}, nil
}

// Find implements Discovery. A resource counts as not served only if the API
// server lists its groups and versions, and the resource is in none of them. A
// 404 proves nothing: it may come from a proxy, or from a list of versions that
// is older than the served ones.
func (d *LiveDiscovery) Find(ctx context.Context, resource schema.GroupResource) (Served, error) {
	ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	versions, err := d.versions(ctx, resource.Group)
	if err != nil {
		return Served{}, err
	}
	var served Served
	var failures []error
	for _, version := range versions {
		in := resource.WithVersion(version).GroupVersion().String()
		list, err := d.client.ServerResourcesForGroupVersionWithContext(ctx, in)
		if err == nil && len(list.APIResources) == 0 {
			err = errNoResources // client-go takes a 404 of the core for such a list
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("asking the API server for the resources of %s: %w", in, err))
			continue
		}
		at := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource })
		if at >= 0 {
			served.Versions, served.Namespaced = append(served.Versions, version), list.APIResources[at].Namespaced
		}
	}
	if len(served.Versions) == 0 {
		return Served{}, errors.Join(failures...)
	}
	return served, nil
}

// versions lists those of an API group, the preferred one first.
func (d *LiveDiscovery) versions(ctx context.Context, group string) ([]string, error) {
	if group == corev1.GroupName {
		return []string{corev1.SchemeGroupVersion.Version}, nil
	}
	groups, err := d.client.ServerGroupsWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking the API server for its groups: %w", err)
	}
	if !slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name != corev1.GroupName }) {
		return nil, errNoGroups
	}
	for _, found := range groups.Groups {
		if found.Name != group {
			continue
		}
		versions := []string{found.PreferredVersion.Version}
		for _, version := range found.Versions {
			if version.Version != found.PreferredVersion.Version {
				versions = append(versions, version.Version)
			}
		}
		return versions, nil
	}
	return nil, nil
}
