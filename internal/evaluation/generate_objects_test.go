// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

func anyService() *rapid.Generator[*corev1.Service] {
	return rapid.Custom(func(t *rapid.T) *corev1.Service {
		service := serviceOf(
			rapid.SampledFrom([]corev1.ServiceType{"ClusterIP", "NodePort", "LoadBalancer", "ExternalName", ""}).Draw(t, "type"),
			rapid.SliceOfN(rapid.SampledFrom([]int32{0, 0, 30000}), 0, 3).Draw(t, "node ports")...)
		service.Spec.AllocateLoadBalancerNodePorts = rapid.SampledFrom([]*bool{nil, ptr.To(true), ptr.To(false)}).Draw(t, "allocate ports")
		return service
	})
}

// anyClass draws a name of a class, the empty name or none.
func anyClass() *rapid.Generator[*string] {
	return rapid.SampledFrom([]*string{nil, ptr.To(""), ptr.To("gold"), ptr.To("silver")})
}

func anyVolumeClaim() *rapid.Generator[*corev1.PersistentVolumeClaim] {
	return rapid.Custom(func(t *rapid.T) *corev1.PersistentVolumeClaim {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: inTeamA("data")}
		claim.Spec.StorageClassName = anyClass().Draw(t, "storage class")
		if chance(t, 5, "beta annotation") {
			claim.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: "gold"}
		}
		claim.Spec.Resources.Requests = anyList("storage").Draw(t, "requests")
		claim.Spec.VolumeAttributesClassName = anyClass().Draw(t, "wanted class")
		claim.Status.CurrentVolumeAttributesClassName = anyClass().Draw(t, "current class")
		if target := anyClass().Draw(t, "target class"); target != nil {
			claim.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: *target}
		}
		claim.Status.AllocatedResources = anyList("storage").Draw(t, "allocated")
		return claim
	})
}

// anyResourceClaim draws claims of all kinds of requests, some of them made for
// the extended resources of a pod.
func anyResourceClaim() *rapid.Generator[*resourceapi.ResourceClaim] {
	return rapid.Custom(func(t *rapid.T) *resourceapi.ResourceClaim {
		claim := resourceClaimOf(rapid.SliceOfN(anyDeviceRequest(), 0, 3).Draw(t, "requests")...)
		if chance(t, 2, "made for a pod") {
			claim.Annotations = map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"}
			claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Controller: ptr.To(true), Name: "owner",
				UID: rapid.SampledFrom([]types.UID{"owner-uid", "gone"}).Draw(t, "owner")}}
		}
		return claim
	})
}

func anyMode() *rapid.Generator[resourceapi.DeviceAllocationMode] {
	return rapid.SampledFrom([]resourceapi.DeviceAllocationMode{
		resourceapi.DeviceAllocationModeExactCount, resourceapi.DeviceAllocationModeAll, "Unheard"})
}

func anyDeviceRequest() *rapid.Generator[resourceapi.DeviceRequest] {
	return rapid.Custom(func(t *rapid.T) resourceapi.DeviceRequest {
		request := resourceapi.DeviceRequest{Name: "request"}
		class := rapid.SampledFrom([]string{"gpu", "nic", ""})
		switch rapid.IntRange(0, 4).Draw(t, "kind of request") {
		case 0:
		case 1, 2:
			for range rapid.IntRange(1, 3).Draw(t, "alternatives") {
				request.FirstAvailable = append(request.FirstAvailable, resourceapi.DeviceSubRequest{
					DeviceClassName: class.Draw(t, "class"), AllocationMode: anyMode().Draw(t, "mode"),
					Count: rapid.Int64Range(0, 5).Draw(t, "count")})
			}
		default:
			request.Exactly = &resourceapi.ExactDeviceRequest{
				DeviceClassName: class.Draw(t, "class"), AllocationMode: anyMode().Draw(t, "mode"),
				Count: rapid.Int64Range(0, 5).Draw(t, "count")}
		}
		return request
	})
}

// typedObject is an object with its resource, which it does not tell by itself.
type typedObject struct {
	resource schema.GroupResource
	object   runtime.Object
}

// anyTyped draws pods more often than all else: they are the hardest to measure.
func anyTyped() *rapid.Generator[typedObject] {
	return rapid.Custom(func(t *rapid.T) typedObject {
		switch rapid.IntRange(0, 6).Draw(t, "resource") {
		case 0:
			return typedObject{services(), anyService().Draw(t, "service")}
		case 1:
			return typedObject{volumeClaims(), anyVolumeClaim().Draw(t, "claim")}
		case 2:
			return typedObject{resourceClaims(), anyResourceClaim().Draw(t, "resource claim")}
		case 3:
			return typedObject{rapid.SampledFrom([]schema.GroupResource{
				{Resource: "secrets"}, {Resource: "configmaps"}, {Resource: "events"}, {Group: "example.com", Resource: "widgets"},
			}).Draw(t, "plain resource"), metadataOf("Any")}
		default:
			return typedObject{pods(), anyPod().Draw(t, "pod")}
		}
	})
}

// anyTypedObjects draws objects of one namespace, each with a name of its own.
func anyTypedObjects(most int) *rapid.Generator[[]typedObject] {
	return rapid.Map(rapid.SliceOfN(anyTyped(), 0, most), func(objects []typedObject) []typedObject {
		for i := range objects {
			object := objects[i].object.DeepCopyObject()
			object.(metav1.Object).SetName(fmt.Sprintf("object-%d", i))
			objects[i].object = object
		}
		return objects
	})
}
