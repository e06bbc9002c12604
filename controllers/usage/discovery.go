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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// discoveryTimeout bounds how long the API server may take to say in which
// versions it serves a resource.
const discoveryTimeout = 10 * time.Second

var errNoGroups = errors.New("the API server names no API group at all")

// Served says in which versions a cluster serves a resource. The zero value
// means that it doesn't serve the resource.
type Served struct {
	// Versions of the resource's API group, the preferred one first.
	Versions []string
	// Namespaced: the resource lives in namespaces.
	Namespaced bool
}

// Discovery finds out what the cluster serves at this moment. An error means
// that nobody knows; it never means that the resource isn't served.
type Discovery interface {
	Find(ctx context.Context, resource schema.GroupResource) (Served, error)
}

// LiveDiscovery is a Discovery that asks the API server each time. A RESTMapper
// doesn't do: the manager's never forgets a version that it has seen, as long as
// it can answer from what it remembers.
type LiveDiscovery struct {
	client rest.Interface
}

var _ Discovery = &LiveDiscovery{}

// NewLiveDiscovery makes a LiveDiscovery.
func NewLiveDiscovery(config *rest.Config, client *http.Client) (*LiveDiscovery, error) {
	asking, err := discovery.NewDiscoveryClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("making the client of discovery: %w", err)
	}
	return &LiveDiscovery{client: asking.RESTClient()}, nil
}

// Find implements Discovery. A resource counts as not served only if the API
// server lists its groups and versions, and the resource is in none of them. A
// 404 proves nothing: a proxy may answer it, or a list of versions that is older
// than what is served.
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
		found, ok, err := d.find(ctx, resource.WithVersion(version))
		if err != nil {
			failures = append(failures, err)
		}
		if ok {
			served.Versions, served.Namespaced = append(served.Versions, version), found.Namespaced
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
	groups := &metav1.APIGroupList{}
	if err := d.get(ctx, "/apis", groups); err != nil {
		return nil, err
	}
	if len(groups.Groups) == 0 {
		return nil, errNoGroups
	}
	at := slices.IndexFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == group })
	if at < 0 {
		return nil, nil
	}
	var versions []string
	for _, version := range groups.Groups[at].Versions {
		if version.Version == groups.Groups[at].PreferredVersion.Version {
			versions = slices.Insert(versions, 0, version.Version)
			continue
		}
		versions = append(versions, version.Version)
	}
	return versions, nil
}

// find looks for a resource in one version.
func (d *LiveDiscovery) find(ctx context.Context, resource schema.GroupVersionResource) (
	found metav1.APIResource, ok bool, err error,
) {
	path := "/apis/" + resource.GroupVersion().String()
	if resource.Group == corev1.GroupName {
		path = "/api/" + resource.Version
	}
	list := &metav1.APIResourceList{}
	if err := d.get(ctx, path, list); err != nil {
		return found, false, err
	}
	if list.GroupVersion != resource.GroupVersion().String() {
		return found, false, fmt.Errorf("asking the API server for %s: it lists the resources of %q", path, list.GroupVersion)
	}
	for i := range list.APIResources {
		if list.APIResources[i].Name == resource.Resource {
			return list.APIResources[i], true, nil
		}
	}
	return found, false, nil
}

func (d *LiveDiscovery) get(ctx context.Context, path string, into runtime.Object) error {
	err := d.client.Get().AbsPath(path).SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx).Into(into)
	if err != nil {
		return fmt.Errorf("asking the API server for %s: %w", path, err)
	}
	return nil
}
