// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
)

// Resources returns the resources that can use something of what these names
// limit, each with the names that it can use, sorted; and the names that
// nothing uses, sorted. It depends on the names alone, not on what the cluster
// serves or on which device classes there are.
func (e *Evaluators) Resources(hard corev1.ResourceList) (
	tracked map[schema.GroupResource][]corev1.ResourceName, unlimitable []corev1.ResourceName,
) {
	tracked = map[schema.GroupResource][]corev1.ResourceName{}
	for _, name := range slices.Sorted(maps.Keys(hard)) {
		resources := e.resourcesUsing(name)
		if len(resources) == 0 {
			unlimitable = append(unlimitable, name)
		}
		for _, resource := range resources {
			tracked[resource] = append(tracked[resource], name)
		}
	}
	return tracked, unlimitable
}

// resourcesUsing returns the resources that can use what one name limits.
func (e *Evaluators) resourcesUsing(name corev1.ResourceName) []schema.GroupResource {
	var resources []schema.GroupResource
	for resource, evaluator := range e.special {
		if _, isClaim := neededObject(resource).(*resourceapi.ResourceClaim); isClaim {
			evaluator = core.NewResourceClaimEvaluator(nil, classOffering(name), nil, noClaimsOfPod)
		}
		if len(evaluator.MatchingResources([]corev1.ResourceName{name})) > 0 {
			resources = append(resources, resource)
		}
	}
	if resource, ok := plainCount(name); ok && e.special[resource] == nil {
		resources = append(resources, resource)
	}
	return resources
}

// classOffering returns a device class that offers what the name limits as an
// extended resource, if it is one. The evaluator of claims asks whether there
// is such a class at the moment, and there may be one later.
func classOffering(name corev1.ResourceName) *extendedresourcecache.ExtendedResourceCache {
	offered := strings.TrimPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
	classes := extendedresourcecache.NewExtendedResourceCache(logr.Discard())
	classes.OnAdd(&resourceapi.DeviceClass{Spec: resourceapi.DeviceClassSpec{ExtendedResourceName: &offered}}, true)
	return classes
}

// plainCount returns the resource that a name of the form count/<resource> or
// count/<resource>.<group> counts, where Kubernetes keeps a quota on it.
func plainCount(name corev1.ResourceName) (schema.GroupResource, bool) {
	counted, isCount := strings.CutPrefix(string(name), "count/")
	resource := schema.ParseGroupResource(counted)
	isExact := generic.ObjectCountQuotaResourceNameFor(resource) == name
	return resource, isCount && isExact && resource.Resource != "" && !isIgnored(resource)
}
