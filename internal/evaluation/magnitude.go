// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"iter"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
)

// Beyond is more of anything than there is. No quota may allow so much, and a
// request for more counts as so much, which no quota has.
//
// The API server stores a claim of 1e2000000. A count of it computes with two
// million digits each time, and can't write down the sum: that is more bytes than
// an object may have.
const (
	Beyond         = 1e30
	beyondExponent = 30
)

// IsBeyond reports whether a quantity is Beyond or more, in either direction, or
// another one that shouldn't be counted with. It doesn't compute with it.
func IsBeyond(q resource.Quantity) bool {
	if q.IsZero() {
		// A zero may have any exponent, and gives it to a sum.
		scale := q.AsDec().Scale()
		return scale < -beyondExponent || scale > beyondExponent
	}
	return math.Abs(q.AsApproximateFloat64()) >= Beyond
}

// counted returns the object with quantities that can be counted with, which is the
// object itself where it has no others.
func counted(object runtime.Object) runtime.Object {
	if !hasBeyond(object) {
		return object
	}
	object = object.DeepCopyObject()
	for list := range resourceLists(object) {
		for name, quantity := range list {
			if IsBeyond(quantity) {
				list[name] = cut(quantity)
			}
		}
	}
	return object
}

// cut returns a quantity of the same sign that can be counted with.
func cut(q resource.Quantity) resource.Quantity {
	most := resource.NewScaledQuantity(int64(q.Sign()), beyondExponent)
	most.Format = resource.DecimalExponent
	return *most
}

func hasBeyond(object runtime.Object) bool {
	for list := range resourceLists(object) {
		for _, quantity := range list {
			if IsBeyond(quantity) {
				return true
			}
		}
	}
	return false
}

// resourceLists are all that evaluators may read of an object, which may be nil.
func resourceLists(object runtime.Object) iter.Seq[corev1.ResourceList] {
	return func(yield func(corev1.ResourceList) bool) {
		switch object := object.(type) {
		case *corev1.Pod:
			_ = object == nil || yieldOfSpec(&object.Spec, yield) && yieldOfStatus(&object.Status, yield)
		case *corev1.PersistentVolumeClaim:
			_ = object == nil || yield(object.Spec.Resources.Requests) && yield(object.Spec.Resources.Limits) &&
				yield(object.Status.AllocatedResources) && yield(object.Status.Capacity)
		}
	}
}

func yieldOfSpec(spec *corev1.PodSpec, yield func(corev1.ResourceList) bool) bool {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			if !yieldOf(&containers[i].Resources, yield) {
				return false
			}
		}
	}
	return yield(spec.Overhead) && yieldOf(spec.Resources, yield)
}

func yieldOfStatus(status *corev1.PodStatus, yield func(corev1.ResourceList) bool) bool {
	for _, containers := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for i := range containers {
			if !yield(containers[i].AllocatedResources) || !yieldOf(containers[i].Resources, yield) {
				return false
			}
		}
	}
	return yield(status.AllocatedResources) && yieldOf(status.Resources, yield)
}

func yieldOf(requirements *corev1.ResourceRequirements, yield func(corev1.ResourceList) bool) bool {
	return requirements == nil || yield(requirements.Requests) && yield(requirements.Limits)
}

// countedRequest is a request about objects that can be counted with.
type countedRequest struct {
	admission.Attributes
	object, old runtime.Object
}

func countedAttributes(a admission.Attributes) admission.Attributes {
	if !hasBeyond(a.GetObject()) && !hasBeyond(a.GetOldObject()) {
		return a
	}
	return countedRequest{Attributes: a, object: counted(a.GetObject()), old: counted(a.GetOldObject())}
}

// GetObject implements admission.Attributes.
func (r countedRequest) GetObject() runtime.Object { return r.object }

// GetOldObject implements admission.Attributes.
func (r countedRequest) GetOldObject() runtime.Object { return r.old }
