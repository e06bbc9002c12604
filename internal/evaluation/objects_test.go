// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
)

func pods() schema.GroupResource     { return schema.GroupResource{Resource: "pods"} }
func services() schema.GroupResource { return schema.GroupResource{Resource: "services"} }
func volumeClaims() schema.GroupResource {
	return schema.GroupResource{Resource: "persistentvolumeclaims"}
}
func resourceClaims() schema.GroupResource {
	return schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceclaims"}
}

// testNow is the time of all tests.
func testNow() time.Time { return time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) }

func newTestEvaluators() *Evaluators { return New(clockAt{now: testNow()}, ClaimSources{}) }

// quotaOf returns a quota that limits these names. How much is no matter here.
func quotaOf(name string, hard ...corev1.ResourceName) Quota {
	list := corev1.ResourceList{}
	for _, limited := range hard {
		list[limited] = resource.MustParse("10")
	}
	return Quota{Name: name, Spec: corev1.ResourceQuotaSpec{Hard: list}}
}

// amountsOf returns a resource list: amountsOf("pods", "1", "cpu", "500m").
func amountsOf(namesAndAmounts ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(namesAndAmounts); i += 2 {
		list[corev1.ResourceName(namesAndAmounts[i])] = resource.MustParse(namesAndAmounts[i+1])
	}
	return list
}

func creation(resource schema.GroupResource, object runtime.Object) admission.Attributes {
	return requestFor(resource, "", admission.Create, object, nil)
}

func update(resource schema.GroupResource, object, old runtime.Object) admission.Attributes {
	return requestFor(resource, "", admission.Update, object, old)
}

func resize(object, old *corev1.Pod) admission.Attributes {
	return requestFor(pods(), "resize", admission.Update, object, old)
}

// requestFor fills in the API server's fields: if there is an old object, it has
// a resourceVersion.
func requestFor(resource schema.GroupResource, subresource string, operation admission.Operation, object, old runtime.Object) admission.Attributes {
	if accessor, err := meta.Accessor(old); err == nil {
		accessor.SetResourceVersion("7")
	}
	return admission.NewAttributesRecord(object, old, schema.GroupVersionKind{}, "team-a", "",
		resource.WithVersion("v1"), subresource, operation, nil, false, nil)
}

func inTeamA(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "team-a", Name: name}
}

// container has requests and limits given as for amountsOf.
func container(name string, requests, limits corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

func podOf(containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: inTeamA("pod"), Spec: corev1.PodSpec{Containers: containers}}
}

// typicalPod has an application container, a sidecar and an init container.
func typicalPod() *corev1.Pod {
	pod := podOf(container("app",
		amountsOf("cpu", "500m", "memory", "1Gi", "ephemeral-storage", "2Gi"),
		amountsOf("cpu", "1", "memory", "1Gi", "ephemeral-storage", "4Gi")))
	always := corev1.ContainerRestartPolicyAlways
	sidecar := container("proxy", amountsOf("cpu", "100m", "memory", "128Mi"), amountsOf("cpu", "200m", "memory", "128Mi"))
	sidecar.RestartPolicy = &always
	setup := container("setup", amountsOf("cpu", "2", "memory", "64Mi"), amountsOf("cpu", "2", "memory", "64Mi"))
	pod.Spec.InitContainers = []corev1.Container{setup, sidecar}
	pod.Spec.PriorityClassName = "normal"
	pod.Status.QOSClass = corev1.PodQOSBurstable
	return pod
}

func serviceOf(kind corev1.ServiceType, nodePorts ...int32) *corev1.Service {
	service := &corev1.Service{ObjectMeta: inTeamA("service"), Spec: corev1.ServiceSpec{Type: kind}}
	for _, port := range nodePorts {
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Port: 80, NodePort: port})
	}
	return service
}

func volumeClaimOf(class, storage string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: inTeamA("data")}
	if class != "" {
		claim.Spec.StorageClassName = &class
	}
	claim.Spec.Resources.Requests = amountsOf("storage", storage)
	return claim
}

func resourceClaimOf(requests ...resourceapi.DeviceRequest) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{
		ObjectMeta: inTeamA("claim"),
		Spec:       resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: requests}},
	}
}

func exactly(class string, count int64) resourceapi.DeviceRequest {
	return resourceapi.DeviceRequest{Name: class, Exactly: &resourceapi.ExactDeviceRequest{
		DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count,
	}}
}

// metadataOf is all that counting sees of an object of most resources.
func metadataOf(kind string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: kind}, ObjectMeta: inTeamA("object")}
}

func sortedNames(names []corev1.ResourceName) []corev1.ResourceName {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}
