// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package fitting

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The objects that workloads make.
var (
	podResource      = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	claimResource    = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	devicesResource  = schema.GroupVersionResource{Group: resourceapi.GroupName, Version: "v1", Resource: "resourceclaims"}
	replicaResource  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	revisionResource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "controllerrevisions"}
	jobResource      = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
)

// Makes reports whether controllers make objects of a resource for workloads.
func Makes(resource schema.GroupResource) bool {
	return slices.ContainsFunc([]schema.GroupVersionResource{
		podResource, claimResource, devicesResource, replicaResource, revisionResource, jobResource,
	}, func(made schema.GroupVersionResource) bool { return made.GroupResource() == resource })
}

// ofTemplate returns the cost of one pod of a template.
func (d *Demand) ofTemplate(template *corev1.PodTemplateSpec, present Present) []Item {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Namespace, pod.Name, pod.GenerateName = d.Namespace, "", d.Name+"-"
	return append([]Item{podItem(pod)}, d.madeFor(pod, present)...)
}

func podItem(pod *corev1.Pod) Item {
	return Item{Resource: podResource, Kind: "Pod", Object: pod, Count: 1}
}

// pods returns the present pods of an object: itself, or the pods that it made.
func (m Manifest) pods() []*corev1.Pod {
	if pod, ok := m.Live.(*corev1.Pod); ok {
		if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			return nil
		}
		return []*corev1.Pod{pod}
	}
	pods := ownedBy(m.Live, m.Present.Pods)
	for _, set := range ownedBy(m.Live, m.Present.ReplicaSets) {
		pods = append(pods, controlledBy(set.UID, m.Present.Pods)...)
	}
	return pods
}

// lacking returns the claims that controllers have not made yet for present pods. Equal claims are one item.
func (d *Demand) lacking(pods []*corev1.Pod, present Present) []Item {
	var items []Item
	for _, pod := range pods {
		without := *pod
		without.Spec.Volumes = slices.DeleteFunc(slices.Clone(pod.Spec.Volumes), func(volume corev1.Volume) bool {
			return present.Claims.Has(pod.Name + "-" + volume.Name)
		})
		without.Spec.ResourceClaims = slices.DeleteFunc(slices.Clone(pod.Spec.ResourceClaims), func(claim corev1.PodResourceClaim) bool {
			isIt := func(status corev1.PodResourceClaimStatus) bool { return status.Name == claim.Name }
			return slices.ContainsFunc(pod.Status.ResourceClaimStatuses, isIt)
		})
		for _, item := range d.madeFor(&without, present) {
			isLike := func(known Item) bool { return apiequality.Semantic.DeepEqual(known.Object, item.Object) }
			if at := slices.IndexFunc(items, isLike); at >= 0 {
				items[at].Count++
				continue
			}
			items = append(items, item)
		}
	}
	return items
}

// madeFor returns the objects that controllers make for a pod: claims of its
// ephemeral volumes, and claims of its devices. They go with the pod.
func (d *Demand) madeFor(pod *corev1.Pod, present Present) []Item {
	var items []Item
	for _, volume := range pod.Spec.Volumes {
		if volume.Ephemeral != nil && volume.Ephemeral.VolumeClaimTemplate != nil {
			template := volume.Ephemeral.VolumeClaimTemplate
			items = append(items, d.volumeClaim(template.ObjectMeta, template.Spec))
		}
	}
	for _, claim := range pod.Spec.ResourceClaims {
		if claim.ResourceClaimTemplateName != nil {
			items = append(items, d.deviceClaim(*claim.ResourceClaimTemplateName, present))
		}
	}
	return items
}

func (d *Demand) volumeClaim(meta metav1.ObjectMeta, spec corev1.PersistentVolumeClaimSpec) Item {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: *meta.DeepCopy(), Spec: *spec.DeepCopy()}
	claim.Namespace = d.Namespace
	return Item{Resource: claimResource, Kind: "PersistentVolumeClaim", Object: claim, Count: 1}
}

// deviceClaim counts a claim whose template can't be read as one without devices, and keeps the template's name.
func (d *Demand) deviceClaim(name string, present Present) Item {
	claim := &resourceapi.ResourceClaim{}
	if template := present.ClaimTemplates[name]; template != nil {
		claim.ObjectMeta = *template.Spec.ObjectMeta.DeepCopy()
		claim.Spec = *template.Spec.Spec.DeepCopy()
	} else {
		d.Unread = append(d.Unread, name)
	}
	claim.Namespace = d.Namespace
	return Item{Resource: devicesResource, Kind: "ResourceClaim", Object: claim, Count: 1}
}

// replaced returns the objects that go with each of the pods.
func (d *Demand) replaced(pods []*corev1.Pod, present Present) []Group {
	old := make([]Group, 0, len(pods))
	for _, pod := range pods {
		old = append(old, Group{Items: append([]Item{podItem(pod)}, d.madeFor(pod, present)...), Count: 1})
	}
	return old
}

// copies are pods that are replaced only when they end, even if the template has
// changed by then.
func (d *Demand) copies(m Manifest, template *corev1.PodTemplateSpec, replicas *int32) {
	if template == nil {
		return
	}
	present := int64(len(ownedBy(m.Live, m.Present.Pods)))
	if m.Present.Unlisted {
		present = d.podsByStatus(m.Live)
	}
	d.Pods = &Pods{New: d.ofTemplate(template, m.Present), Wanted: int64(ptr.Deref(replicas, 1)), Present: present}
}

// ownedBy returns the objects that the owner controls. There are none without an
// owner.
func ownedBy[T client.Object](owner client.Object, objects []T) []T {
	if owner == nil {
		return nil
	}
	return controlledBy(owner.GetUID(), objects)
}

func controlledBy[T client.Object](owner types.UID, objects []T) []T {
	var owned []T
	for _, object := range objects {
		if controller := metav1.GetControllerOf(object); controller != nil && controller.UID == owner {
			owned = append(owned, object)
		}
	}
	return owned
}

// split sorts pods into pods that stay and pods that must be replaced.
func split(pods []*corev1.Pod, stays func(*corev1.Pod) bool) (current, old []*corev1.Pod) {
	for _, pod := range pods {
		if stays(pod) {
			current = append(current, pod)
		} else {
			old = append(old, pod)
		}
	}
	return current, old
}

func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	return apiequality.Semantic.DeepEqual(a, b)
}
