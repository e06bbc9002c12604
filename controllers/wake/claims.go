// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package wake

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/sharedquota/shared-quota-operator/internal/waiting"
)

func volumeClaims() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
}

// claim makes the claims of a pod's ephemeral volumes, as kube-controller-manager does, and returns how many claims the pod
// still lacks. Unlike the controller that makes claims of devices, that of ephemeral volumes ignores changes of pods: it
// pauses for up to 1000 seconds. The quotas judge these requests like any other.
func (w *Workloads) claim(ctx context.Context, object *unstructured.Unstructured) (lacking int64, err error) {
	lacking = max(lacks(waiting.Pod, object), 0)
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, pod); err != nil || lacking == 0 {
		return lacking, err //nolint:wrapcheck // it never fails: the API server sent a pod
	}
	var errs []error
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].Ephemeral == nil {
			continue
		}
		switch err := w.create(ctx, volumeClaim(pod, &pod.Spec.Volumes[i])); {
		case err == nil, apierrors.IsAlreadyExists(err):
			lacking--
		case !isRefusal(err):
			errs = append(errs, fmt.Errorf("claiming volume %s of pod %s/%s: %w", pod.Spec.Volumes[i].Name, pod.Namespace, pod.Name, err))
		}
	}
	return lacking, errors.Join(errs...)
}

// isRefusal reports whether an admission webhook or plugin refused a request, rather than the authorizer.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "cannot create resource")
}

func (w *Workloads) create(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(claim)
	if err != nil {
		return err //nolint:wrapcheck // the caller names the object
	}
	_, err = w.client.Resource(volumeClaims()).Namespace(claim.Namespace).
		Create(ctx, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	return err //nolint:wrapcheck // the caller names the object
}

// volumeClaim returns the claim that belongs to an ephemeral volume.
func volumeClaim(pod *corev1.Pod, volume *corev1.Volume) *corev1.PersistentVolumeClaim {
	template := volume.Ephemeral.VolumeClaimTemplate
	return &corev1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name + "-" + volume.Name,
			Labels: template.Labels, Annotations: template.Annotations,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: ptr.To(true),
			}},
		},
		Spec: template.Spec,
	}
}
