// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package builders

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// VolumeClaimBuilder builds a PersistentVolumeClaim.
type VolumeClaimBuilder struct{ claim corev1.PersistentVolumeClaim }

// VolumeClaim starts a claim of 1Gi of no storage class.
func VolumeClaim(namespace, name string) *VolumeClaimBuilder {
	return (&VolumeClaimBuilder{claim: corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: ptr.To(""),
		},
	}}).Size("1Gi")
}

// Obj returns the claim.
func (b *VolumeClaimBuilder) Obj() *corev1.PersistentVolumeClaim { return &b.claim }

// Size is how much storage is claimed.
func (b *VolumeClaimBuilder) Size(quantity string) *VolumeClaimBuilder {
	b.claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(quantity)}
	return b
}

// StorageClass names the storage class.
func (b *VolumeClaimBuilder) StorageClass(name string) *VolumeClaimBuilder {
	b.claim.Spec.StorageClassName = &name
	return b
}

// AttributesClass names the volume attributes class.
func (b *VolumeClaimBuilder) AttributesClass(name string) *VolumeClaimBuilder {
	b.claim.Spec.VolumeAttributesClassName = &name
	return b
}

// ExpandableStorageClass returns a storage class whose claims may grow.
func ExpandableStorageClass(name string) *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "storage.example.com", AllowVolumeExpansion: ptr.To(true),
	}
}
