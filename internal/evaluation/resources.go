// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/kubernetes/pkg/quota/v1/install"
)

// Resources returns the resources that can use one of the limited names, each
// with the names that it can use, sorted; and the names that nothing uses,
// sorted. It depends on the names alone, not on the cluster's resources or its
// device classes.
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

// resourcesUsing returns the resources that can use one limited name.
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

// classOffering returns a device class that offers the limited name as an
// extended resource, if it is one. The evaluator of claims asks whether there is
// such a class at the moment, and there may be one later.
func classOffering(name corev1.ResourceName) *extendedresourcecache.ExtendedResourceCache {
	offered := strings.TrimPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
	classes := extendedresourcecache.NewExtendedResourceCache(logr.Discard())
	classes.OnAdd(&resourceapi.DeviceClass{Spec: resourceapi.DeviceClassSpec{ExtendedResourceName: &offered}}, true)
	return classes
}

// plainCount returns the resource that a name of the form count/<resource> or
// count/<resource>.<group> counts, where Kubernetes keeps a quota on it.
func plainCount(name corev1.ResourceName) (schema.GroupResource, bool) {
	counted, isCount := strings.CutPrefix(string(name), countPrefix)
	resource := schema.ParseGroupResource(counted)
	isExact := generic.ObjectCountQuotaResourceNameFor(resource) == name
	return resource, isCount && isExact && resource.Resource != "" && !isIgnored(resource)
}

// Rule names requests for a resource, or for one of its subresources.
type Rule struct {
	// Subresource is empty for the resource itself.
	Subresource string
	Operations  []admission.Operation
}

// Rules returns the requests that can charge a quota for this resource, which
// is none if Kubernetes keeps no quota on it.
//
// Two kinds of status updates are left out on purpose, although they can raise
// the use: updates of a PersistentVolumeClaim, which Kubernetes notes and never
// refuses, and updates of a pod, which it doesn't look at. They report changes
// that have already happened to an object that was charged when it was requested.
// Counting sees them.
func Rules(resource schema.GroupResource) []Rule {
	if requests := kindOf(resource).requests; requests != nil {
		return requests()
	}
	if isIgnored(resource) {
		return nil
	}
	return []Rule{{Operations: []admission.Operation{admission.Create}}}
}

// onChange are the requests that create or update an object.
func onChange() []Rule {
	return []Rule{{Operations: []admission.Operation{admission.Create, admission.Update}}}
}

// onChangeOrResize are those of pods. An update charges where it moves the pod to another scope: only
// activeDeadlineSeconds can, see the scope Terminating.
func onChangeOrResize() []Rule {
	return append(onChange(), Rule{Subresource: "resize", Operations: []admission.Operation{admission.Update}})
}

// NeedsObject reports whether only the whole object shows its cost. For all other
// resources metadata is enough.
func NeedsObject(resource schema.GroupResource) bool {
	return neededObject(resource) != nil
}

// neededObject returns a nil pointer of the type that a resource's evaluator
// looks into, and nil if it doesn't look at the object.
func neededObject(resource schema.GroupResource) runtime.Object {
	return kindOf(resource).object
}

// checkObject returns an error for an object that the resource's evaluator can't
// judge. Some evaluators take such an object as free, and a quota must not fail
// open.
func checkObject(resource schema.GroupResource, object runtime.Object) error {
	if value := reflect.ValueOf(object); value.Kind() != reflect.Pointer || value.IsNil() {
		return fmt.Errorf("evaluating %s: there is no object", resource)
	}
	needed := neededObject(resource)
	if needed != nil && reflect.TypeOf(object) != reflect.TypeOf(needed) {
		return fmt.Errorf("evaluating %s: want an object of type %T, got %T", resource, needed, object)
	}
	return nil
}

// charging returns the evaluator of a request that may charge a quota, or nil if the request charges none. The error
// means that the request can't be judged.
func (e *Evaluators) charging(a admission.Attributes) (quota.Evaluator, error) {
	evaluator := e.evaluator(a.GetResource().GroupResource())
	if evaluator == nil || !canCharge(a) {
		return nil, nil //nolint:nilnil // as documented
	}
	if err := checkObjects(a); err != nil {
		return nil, err
	}
	if !evaluator.Handles(a) {
		return nil, nil //nolint:nilnil // as documented
	}
	return evaluator, nil
}

// evaluator returns the evaluator of a resource, or nil if Kubernetes keeps
// no quota on it. Plain counts are made on demand: any resource can have one,
// and it has no state worth keeping.
func (e *Evaluators) evaluator(resource schema.GroupResource) quota.Evaluator {
	if isIgnored(resource) {
		return nil
	}
	evaluator, ok := e.special[resource]
	if _, isOfClaims := evaluator.(*claimEvaluator); isOfClaims {
		return e.claims.now()
	}
	if ok {
		return evaluator
	}
	return generic.NewObjectCountEvaluator(resource, nil, "")
}

// isIgnored reports whether Kubernetes keeps no quota on a resource: events, and
// resources that are never stored.
func isIgnored(resource schema.GroupResource) bool {
	_, ignored := install.DefaultIgnoredResources()[resource]
	return ignored
}

// canCharge reports whether one of the rules of its resource names a request.
func canCharge(a admission.Attributes) bool {
	return slices.ContainsFunc(Rules(a.GetResource().GroupResource()), func(rule Rule) bool {
		return rule.Subresource == a.GetSubresource() && slices.Contains(rule.Operations, a.GetOperation())
	})
}

func checkObjects(a admission.Attributes) error {
	resource := a.GetResource().GroupResource()
	if err := checkObject(resource, a.GetObject()); err != nil {
		return err
	}
	if a.GetOperation() != admission.Update {
		return nil
	}
	if err := checkObject(resource, a.GetOldObject()); err != nil {
		return fmt.Errorf("before the update: %w", err)
	}
	return nil
}
