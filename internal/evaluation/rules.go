// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
)

// Rule names requests for a resource, or for one of its subresources.
type Rule struct {
	// Subresource is empty for the resource itself.
	Subresource string
	Operations  []admission.Operation
}

// Rules returns the requests that can charge a quota for this resource, which
// is none where Kubernetes keeps no quota on it.
//
// Two kinds of status updates are left out on purpose, although they can raise
// what is used: that of a PersistentVolumeClaim, which Kubernetes notes and
// never refuses, and that of a pod, which it doesn't look at. They report what
// has already happened to something that was charged when it was asked for.
// Counting sees them.
func Rules(resource schema.GroupResource) []Rule {
	create := Rule{Operations: []admission.Operation{admission.Create}}
	createOrUpdate := Rule{Operations: []admission.Operation{admission.Create, admission.Update}}
	resize := Rule{Subresource: "resize", Operations: []admission.Operation{admission.Update}}
	switch neededObject(resource).(type) {
	case *corev1.Pod:
		// An update charges where it moves the pod to another scope: only
		// activeDeadlineSeconds can, see the scope Terminating.
		return []Rule{createOrUpdate, resize}
	case *corev1.Service, *corev1.PersistentVolumeClaim, *resourceapi.ResourceClaim:
		return []Rule{createOrUpdate}
	}
	if isIgnored(resource) {
		return nil
	}
	return []Rule{create}
}

// canCharge reports whether one of the rules of its resource names a request.
func canCharge(a admission.Attributes) bool {
	return slices.ContainsFunc(Rules(a.GetResource().GroupResource()), func(rule Rule) bool {
		return rule.Subresource == a.GetSubresource() && slices.Contains(rule.Operations, a.GetOperation())
	})
}

// NeedsObject reports whether only the whole object shows what it costs. For
// all other resources metadata is enough.
func NeedsObject(resource schema.GroupResource) bool {
	return neededObject(resource) != nil
}

// neededObject returns a nil pointer of the type that a resource's evaluator
// looks into, and nil where it doesn't look at the object.
func neededObject(resource schema.GroupResource) runtime.Object {
	switch resource {
	case schema.GroupResource{Resource: "pods"}:
		return (*corev1.Pod)(nil)
	case schema.GroupResource{Resource: "services"}:
		return (*corev1.Service)(nil)
	case schema.GroupResource{Resource: "persistentvolumeclaims"}:
		return (*corev1.PersistentVolumeClaim)(nil)
	case schema.GroupResource{Group: resourceapi.GroupName, Resource: "resourceclaims"}:
		return (*resourceapi.ResourceClaim)(nil)
	}
	return nil
}

// checkObject returns an error for an object that the resource's evaluator
// can't judge. Some evaluators take such an object for one that costs nothing,
// and a quota must not fail open.
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
