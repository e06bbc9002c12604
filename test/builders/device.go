// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package builders

import (
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeviceClaimBuilder builds a ResourceClaim.
type DeviceClaimBuilder struct{ claim resourceapi.ResourceClaim }

// DeviceClaim starts a claim of no device.
func DeviceClaim(namespace, name string) *DeviceClaimBuilder {
	return &DeviceClaimBuilder{claim: resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}}
}

// Obj returns the claim.
func (b *DeviceClaimBuilder) Obj() *resourceapi.ResourceClaim { return &b.claim }

// Exactly claims a number of devices of a class.
func (b *DeviceClaimBuilder) Exactly(class string, count int64) *DeviceClaimBuilder {
	return b.request(resourceapi.DeviceRequest{Exactly: &resourceapi.ExactDeviceRequest{
		DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count,
	}})
}

// FirstAvailable claims what is available first: this number of devices of one
// of the classes.
func (b *DeviceClaimBuilder) FirstAvailable(count int64, classes ...string) *DeviceClaimBuilder {
	var alternatives []resourceapi.DeviceSubRequest
	for _, class := range classes {
		alternatives = append(alternatives, resourceapi.DeviceSubRequest{
			Name: class, DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count,
		})
	}
	return b.request(resourceapi.DeviceRequest{FirstAvailable: alternatives})
}

func (b *DeviceClaimBuilder) request(request resourceapi.DeviceRequest) *DeviceClaimBuilder {
	request.Name = "devices"
	b.claim.Spec.Devices.Requests = append(b.claim.Spec.Devices.Requests, request)
	return b
}

// DeviceClass returns a device class that matches every device.
func DeviceClass(name string) *resourceapi.DeviceClass {
	return &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// DeviceClassOffering returns a device class whose devices pods can request as
// an extended resource.
func DeviceClassOffering(name, extendedResource string) *resourceapi.DeviceClass {
	class := DeviceClass(name)
	class.Spec.ExtendedResourceName = &extendedResource
	return class
}
