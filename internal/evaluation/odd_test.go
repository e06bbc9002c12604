// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"pgregory.net/rapid"
)

func TestAnObjectThatCannotBeJudgedIsAnError(t *testing.T) {
	quotas := []Quota{quotaOf("team", "pods", "services", "count/widgets.example.com")}
	widgets := schema.GroupResource{Group: "example.com", Resource: "widgets"}
	for name, test := range map[string]chargeTest{
		"no pod": {request: creation(pods(), nil),
			wantError: "evaluating pods: there is no object"},
		"a nil pod": {request: creation(pods(), (*corev1.Pod)(nil)),
			wantError: "evaluating pods: there is no object"},
		"no custom object": {request: creation(widgets, (*unstructured.Unstructured)(nil)),
			wantError: "evaluating widgets.example.com: there is no object"},
		"a pod of which only metadata is given": {request: creation(pods(), metadataOf("Pod")),
			wantError: "evaluating pods: want an object of type *v1.Pod, got *v1.PartialObjectMetadata"},
		"an update of a pod whose type is not known": {request: update(pods(), &unstructured.Unstructured{}, typicalPod()),
			wantError: "evaluating pods: want an object of type *v1.Pod, got *unstructured.Unstructured"},
		"an update without the old object": {request: update(services(), serviceOf("ClusterIP"), nil),
			wantError: "before the update: evaluating services: there is no object"},
	} {
		test.quotas = quotas
		t.Run(name, test.run)
	}
}

// anyObject draws objects of right, wrong and no type.
func anyObject() *rapid.Generator[runtime.Object] {
	return rapid.OneOf(
		rapid.SampledFrom([]runtime.Object{
			nil, (*corev1.Pod)(nil), (*corev1.Service)(nil), (*corev1.PersistentVolumeClaim)(nil),
			(*resourceapi.ResourceClaim)(nil), (*metav1.PartialObjectMetadata)(nil), (*unstructured.Unstructured)(nil),
			&corev1.Pod{}, &corev1.Service{}, &corev1.PersistentVolumeClaim{}, &resourceapi.ResourceClaim{},
			&unstructured.Unstructured{}, &metav1.PartialObjectMetadata{}, &metav1.Status{}, &runtime.Unknown{},
		}),
		rapid.Map(anyPod(), func(pod *corev1.Pod) runtime.Object { return pod }),
		rapid.Map(anyService(), func(service *corev1.Service) runtime.Object { return service }),
		rapid.Map(anyVolumeClaim(), func(claim *corev1.PersistentVolumeClaim) runtime.Object { return claim }),
		rapid.Map(anyResourceClaim(), func(claim *resourceapi.ResourceClaim) runtime.Object { return claim }),
	)
}

func anyResource() *rapid.Generator[schema.GroupResource] {
	return rapid.SampledFrom([]schema.GroupResource{
		{}, pods(), services(), volumeClaims(), resourceClaims(), {Resource: "events"}, {Resource: "secrets"},
		{Group: "apps", Resource: "deployments"}, {Group: "apps", Resource: "pods"},
	})
}

// No mix of resource, objects, operation and quotas may panic, and an object
// that can't be judged is never free of charge.
func TestOddRequestsNeverPanicAndNeverPassUnjudged(t *testing.T) {
	evaluators := newTestEvaluators()
	rapid.Check(t, func(t *rapid.T) {
		resource := anyResource().Draw(t, "resource")
		object := anyObject().Draw(t, "object")
		request := admission.NewAttributesRecord(object, anyObject().Draw(t, "old object"), schema.GroupVersionKind{}, "team-a", "",
			resource.WithVersion("v1"), rapid.SampledFrom([]string{"", "status", "resize", "odd"}).Draw(t, "subresource"),
			rapid.SampledFrom([]admission.Operation{"CREATE", "UPDATE", "DELETE", "CONNECT", ""}).Draw(t, "operation"),
			nil, false, nil)
		quotas := rapid.SliceOfN(anyQuota(limitableNames()), 1, 3).Draw(t, "quotas")
		_, err := evaluators.Charges(request, quotas)
		if canCharge(request) && checkObject(resource, object) != nil && err == nil {
			t.Fatal("an object that can't be judged passed")
		}
	})
}

func TestOddObjectsNeverPanicInCounting(t *testing.T) {
	evaluators := newTestEvaluators()
	rapid.Check(t, func(t *rapid.T) {
		resource := anyResource().Draw(t, "resource")
		footprint, _ := evaluators.Footprint(resource, anyObject().Draw(t, "object"))
		quota := anyQuota(limitableNames()).Draw(t, "quota")
		if _, err := evaluators.Usage(resource, footprint, quota, time.Time{}); err != nil {
			t.Fatal("a footprint could not be matched:", err)
		}
		other, _ := evaluators.Footprint(anyResource().Draw(t, "other resource"), anyObject().Draw(t, "other object"))
		if _, err := evaluators.Usage(resource, other, quota, testNow()); err != nil {
			t.Fatal("a footprint of another resource could not be matched:", err)
		}
	})
}
