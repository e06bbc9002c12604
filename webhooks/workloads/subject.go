// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/sharedquota/shared-quota-operator/internal/fitting"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// +kubebuilder:rbac:groups=apps,resources=deployments;replicasets;statefulsets,verbs=get
// +kubebuilder:rbac:groups="",resources=replicationcontrollers,verbs=get

// liveTimeout bounds the read of the workload that a scale or an autoscaler names.
const liveTimeout = 500 * time.Millisecond

// subject is a workload that a request asks for.
type subject struct {
	// workload is the object that makes pods, and reference the applied object: an autoscaler is another one.
	workload, reference corev1.ObjectReference
	// after is the object with the request, and before the object without it; nil for none.
	after  fitting.Manifest
	before *fitting.Manifest
	// maximum: an autoscaler's maxReplicas are asked for.
	maximum bool
	// unknownNodes: it is a DaemonSet, and on how many nodes it will run isn't known. One pod of it
	// is judged.
	unknownNodes bool
	// absent: the request would create the workload, and is a dry run or is denied.
	absent bool
}

var errNegative = outcomes.FewerThanNone.Err()

// subject reads a request. It returns nil for a request that has nothing to
// judge.
func (h *Handler) subject(ctx context.Context, request *admissionv1.AdmissionRequest) (*subject, error) {
	var asked *subject
	var err error
	switch {
	case request.SubResource == "scale":
		asked, err = h.scaled(ctx, request)
	case request.Resource.Resource == "horizontalpodautoscalers":
		asked, err = h.autoscaled(ctx, request)
	default:
		asked, err = h.applied(ctx, request)
	}
	if err == nil && asked != nil {
		err = asked.check()
	}
	return asked, err
}

// check returns why nothing can be said of a subject.
func (s *subject) check() error {
	if replicasOf(s.after.Object) < 0 {
		return errNegative
	}
	if s.after.Live != nil {
		if err := tooManyParts(s.after.Live); err != nil {
			return err
		}
	}
	return tooManyParts(s.after.Object)
}

// applied is a workload as such.
func (h *Handler) applied(ctx context.Context, request *admissionv1.AdmissionRequest) (*subject, error) {
	done, err := h.turn(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	kind := schema.GroupVersionKind(request.Kind)
	object, err := h.decode(kind, request.Object.Raw)
	if err != nil {
		return nil, err
	}
	asked := &subject{after: manifest(request, object, nil), reference: referenceTo(kind, object)}
	asked.workload = asked.reference
	if request.Operation == admissionv1.Update {
		old, err := h.decode(kind, request.OldObject.Raw)
		if err != nil {
			return nil, err
		}
		asked.after = manifest(request, object, old)
		asked.before = ptr.To(manifest(request, old, old))
	}
	return asked, nil
}

func (h *Handler) decode(kind schema.GroupVersionKind, raw []byte) (client.Object, error) {
	made, err := h.types.Empty(kind)
	if err != nil {
		return nil, outcomes.UnknownKind.Err(kind.Kind)
	}
	object, isObject := made.(client.Object)
	if !isObject || len(raw) == 0 {
		return nil, outcomes.NoObject.Err()
	}
	if err := json.Unmarshal(raw, object); err != nil {
		return nil, outcomes.NotReadable.Err(err)
	}
	return object, nil
}

func manifest(request *admissionv1.AdmissionRequest, object, live client.Object) fitting.Manifest {
	return fitting.Manifest{
		Resource: schema.GroupVersionResource(request.Resource), Kind: request.Kind.Kind, Object: object, Live: live,
		Present: fitting.Present{Unlisted: true},
	}
}

// scaled is a workload that the subresource scale changes. It is nil for a workload that can't be read because it is
// gone, or of another kind.
func (h *Handler) scaled(ctx context.Context, request *admissionv1.AdmissionRequest) (*subject, error) {
	scale := &autoscalingv1.Scale{}
	if err := json.Unmarshal(request.Object.Raw, scale); err != nil {
		return nil, outcomes.NotReadable.Err(err)
	}
	kinds := map[string]string{
		"deployments": "Deployment", "replicasets": "ReplicaSet", "statefulsets": "StatefulSet",
		"replicationcontrollers": "ReplicationController",
	}
	group := schema.GroupVersion{Group: request.Resource.Group, Version: request.Resource.Version}
	asked, err := h.named(ctx, group.WithKind(kinds[request.Resource.Resource]), request.Namespace, request.Name, scale.Spec.Replicas)
	if asked != nil {
		asked.reference = asked.workload
		asked.before = ptr.To(asked.after)
		asked.before.Object = asked.after.Live
	}
	return asked, err
}

// autoscaled is the workload that an autoscaler scales, with as many pods as it may have at most.
func (h *Handler) autoscaled(ctx context.Context, request *admissionv1.AdmissionRequest) (*subject, error) {
	autoscaler, old := &autoscalingv2.HorizontalPodAutoscaler{}, &autoscalingv2.HorizontalPodAutoscaler{}
	if err := json.Unmarshal(request.Object.Raw, autoscaler); err != nil {
		return nil, outcomes.NotReadable.Err(err)
	}
	target := autoscaler.Spec.ScaleTargetRef
	group, err := schema.ParseGroupVersion(target.APIVersion)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // a target of another kind: nothing can be said of it
	}
	asked, err := h.named(ctx, group.WithKind(target.Kind), request.Namespace, target.Name, autoscaler.Spec.MaxReplicas)
	if asked == nil || err != nil {
		return nil, err
	}
	asked.maximum = true
	asked.reference = referenceTo(schema.GroupVersionKind(request.Kind), autoscaler)
	if request.Operation == admissionv1.Update && json.Unmarshal(request.OldObject.Raw, old) == nil && old.Spec.ScaleTargetRef == target {
		asked.before = ptr.To(asked.after)
		asked.before.Object = withReplicas(asked.after.Live, old.Spec.MaxReplicas)
	}
	return asked, nil
}

// named is a workload that is read live, with so many pods. It is nil for a workload of another kind, or one without an
// object.
func (h *Handler) named(
	ctx context.Context, kind schema.GroupVersionKind, namespace, name string, replicas int32,
) (*subject, error) {
	live, resource := emptyOf(kind.GroupKind())
	if live == nil {
		return nil, nil //nolint:nilnil // nothing can be said of it, and that is no error
	}
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	if err := h.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, live); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // it may be applied after this
		}
		log.FromContext(ctx).Info("Could not read a workload to judge it", "workload", shortName(kind.Kind, name),
			"namespace", namespace, "reason", err.Error())
		return nil, outcomes.NotReadNow.Err(shortName(kind.Kind, name))
	}
	return &subject{
		workload: referenceTo(resource.GroupVersion().WithKind(kind.Kind), live),
		after: fitting.Manifest{
			Resource: resource, Kind: kind.Kind, Object: withReplicas(live, replicas), Live: live,
			Present: fitting.Present{Unlisted: true},
		},
	}, nil
}

// emptyOf returns an object of a kind that has a scale; nil for any other kind.
func emptyOf(kind schema.GroupKind) (client.Object, schema.GroupVersionResource) {
	switch kind {
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}:
		return &appsv1.Deployment{}, appsv1.SchemeGroupVersion.WithResource("deployments")
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"}:
		return &appsv1.StatefulSet{}, appsv1.SchemeGroupVersion.WithResource("statefulsets")
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "ReplicaSet"}:
		return &appsv1.ReplicaSet{}, appsv1.SchemeGroupVersion.WithResource("replicasets")
	case schema.GroupKind{Kind: "ReplicationController"}:
		return &corev1.ReplicationController{}, corev1.SchemeGroupVersion.WithResource("replicationcontrollers")
	}
	return nil, schema.GroupVersionResource{}
}

func referenceTo(kind schema.GroupVersionKind, object client.Object) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind,
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
	}
}

// shortName is how kubectl names an object.
func shortName(kind, name string) string { return strings.ToLower(kind) + "/" + name }
