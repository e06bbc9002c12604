// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// prefix of everything that the API server stores.
const prefix = "/registry/"

var (
	pods          = schema.GroupResource{Resource: "pods"}
	services      = schema.GroupResource{Resource: "services"}
	volumeClaims  = schema.GroupResource{Resource: "persistentvolumeclaims"}
	namespaces    = schema.GroupResource{Resource: "namespaces"}
	deviceClasses = schema.GroupResource{Group: "resource.k8s.io", Resource: "deviceclasses"}
	quotas        = schema.GroupResource{Group: quotav1.GroupVersion.Group, Resource: "clusterresourcequotas"}
)

// place is what a key of etcd stands for.
type place struct {
	resource schema.GroupResource
	// namespace is empty for what is in none.
	namespace, name string
}

// builtIns returns the resources of Kubernetes that are followed, by the path
// under which they are stored. Leases and events are not among them: they
// change all the time and nobody limits them.
func builtIns() map[string]schema.GroupResource {
	table := map[string]schema.GroupResource{
		"controllers":        {Resource: "replicationcontrollers"},
		"ingress":            {Group: "networking.k8s.io", Resource: "ingresses"},
		"services/endpoints": {Resource: "endpoints"},
		"services/specs":     services,
	}
	for group, resources := range map[string][]string{
		"": {
			"configmaps", "limitranges", "namespaces", "persistentvolumeclaims", "pods", "podtemplates",
			"resourcequotas", "secrets", "serviceaccounts",
		},
		"apps":                      {"controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"},
		"autoscaling":               {"horizontalpodautoscalers"},
		"batch":                     {"cronjobs", "jobs"},
		"discovery.k8s.io":          {"endpointslices"},
		"networking.k8s.io":         {"networkpolicies"},
		"policy":                    {"poddisruptionbudgets"},
		"rbac.authorization.k8s.io": {"rolebindings", "roles"},
		"resource.k8s.io":           {"deviceclasses"},
	} {
		for _, resource := range resources {
			table[resource] = schema.GroupResource{Group: group, Resource: resource}
		}
	}
	return table
}

// layout tells what the keys of etcd stand for.
type layout struct {
	builtIns map[string]schema.GroupResource // path below prefix -> resource
}

// place returns what a key stands for; false for what nobody limits.
func (l layout) place(key string) (place, bool) {
	resource, rest := l.resource(strings.Split(strings.TrimPrefix(key, prefix), "/"))
	switch len(rest) {
	case 1:
		clusterScoped := resource == namespaces || resource == deviceClasses || resource == quotas
		return place{resource: resource, name: rest[0]}, clusterScoped
	case 2:
		return place{resource: resource, namespace: rest[0], name: rest[1]}, true
	}
	return place{}, false
}

// resource returns the resource that a path begins with, and the rest of it.
// Custom resources are stored by group, which has a dot, and name.
func (l layout) resource(path []string) (resource schema.GroupResource, rest []string) {
	for length := 1; length <= 2 && length < len(path); length++ {
		if resource, found := l.builtIns[strings.Join(path[:length], "/")]; found {
			return resource, path[length:]
		}
	}
	if len(path) > 2 && strings.Contains(path[0], ".") {
		return schema.GroupResource{Group: path[0], Resource: path[1]}, path[2:]
	}
	return schema.GroupResource{}, nil
}

// follows tells whether the objects of a resource can be found in etcd.
func (l layout) follows(resource schema.GroupResource) bool {
	for _, known := range l.builtIns {
		if known == resource {
			return true
		}
	}
	return strings.Contains(resource.Group, ".") && !scheme.Scheme.IsGroupRegistered(resource.Group)
}
