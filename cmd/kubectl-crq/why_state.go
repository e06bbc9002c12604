// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// scale is a workload's statement of its pods.
type scale struct {
	wants, has, ready int32
	// observed is the generation of the spec that its controller has seen.
	observed int64
}

// scaleOf returns the scale of a workload that its spec has a number of pods for, or its nodes.
func scaleOf(object client.Object) (scale, bool) {
	switch object := object.(type) {
	case *appsv1.Deployment:
		of := &object.Status
		return scale{ptr.Deref(object.Spec.Replicas, 1), of.Replicas, of.ReadyReplicas, of.ObservedGeneration}, true
	case *appsv1.ReplicaSet:
		of := &object.Status
		return scale{ptr.Deref(object.Spec.Replicas, 1), of.Replicas, of.ReadyReplicas, of.ObservedGeneration}, true
	case *corev1.ReplicationController:
		of := &object.Status
		return scale{ptr.Deref(object.Spec.Replicas, 1), of.Replicas, of.ReadyReplicas, of.ObservedGeneration}, true
	case *appsv1.StatefulSet:
		of := &object.Status
		return scale{ptr.Deref(object.Spec.Replicas, 1), of.Replicas, of.ReadyReplicas, of.ObservedGeneration}, true
	case *appsv1.DaemonSet:
		of := &object.Status
		return scale{of.DesiredNumberScheduled, of.CurrentNumberScheduled, of.NumberReady, of.ObservedGeneration}, true
	}
	return scale{}, false
}

// stateOf says of a link how far it has come.
func stateOf(object client.Object) string {
	switch object := object.(type) {
	case *batchv1.Job:
		return jobState(object)
	case *batchv1.CronJob:
		return cronState(object)
	case *autoscalingv2.HorizontalPodAutoscaler:
		return scalerState(object)
	}
	of, scales := scaleOf(object)
	if !scales {
		return "exists" + phaseOf(object)
	}
	state := fmt.Sprintf("wants %s, has %d, %d ready", plural(int64(of.wants), "pod"), of.has, of.ready)
	if deployment, ok := object.(*appsv1.Deployment); ok {
		if old := of.has - deployment.Status.UpdatedReplicas; old > 0 {
			state += fmt.Sprintf("; %d are of an older template", old)
		}
		if deployment.Spec.Paused {
			state += "; it is paused"
		}
	}
	return state
}

func jobState(job *batchv1.Job) string {
	switch {
	case ptr.Deref(job.Spec.Suspend, false):
		return "is suspended"
	case job.Status.CompletionTime != nil:
		return "has completed"
	}
	for _, condition := range job.Status.Conditions {
		if condition.Type == batchv1.JobFailed && condition.Status == corev1.ConditionTrue {
			return "has failed: " + condition.Message
		}
	}
	return fmt.Sprintf("runs %s at once, has %d active, %d succeeded, %d failed",
		plural(int64(ptr.Deref(job.Spec.Parallelism, 1)), "pod"), job.Status.Active, job.Status.Succeeded, job.Status.Failed)
}

func cronState(cron *batchv1.CronJob) string {
	state := fmt.Sprintf("runs at %q", cron.Spec.Schedule)
	if ptr.Deref(cron.Spec.Suspend, false) {
		state += ", is suspended"
	}
	return state + fmt.Sprintf(", has %s active", plural(int64(len(cron.Status.Active)), "Job"))
}

func scalerState(scaler *autoscalingv2.HorizontalPodAutoscaler) string {
	target := scaler.Spec.ScaleTargetRef
	state := fmt.Sprintf("scales %s/%s to between %d and %d replicas", target.Kind, target.Name,
		ptr.Deref(scaler.Spec.MinReplicas, 1), scaler.Spec.MaxReplicas)
	if scaler.Status.DesiredReplicas > 0 {
		state += fmt.Sprintf(", wants %d now", scaler.Status.DesiredReplicas)
	}
	at := slices.IndexFunc(scaler.Status.Conditions, func(condition autoscalingv2.HorizontalPodAutoscalerCondition) bool {
		return condition.Type == autoscalingv2.ScalingActive && condition.Status == corev1.ConditionFalse
	})
	if at >= 0 {
		state += "; it doesn't scale: " + scaler.Status.Conditions[at].Message
	}
	return state
}

// phaseOf says of an object that exists whether it works yet.
func phaseOf(object client.Object) string {
	switch object := object.(type) {
	case *corev1.Pod:
		state, message, troubled := podTrouble(object)
		if !troubled {
			return fmt.Sprintf(", its phase is %s", object.Status.Phase)
		}
		if message != "" {
			state += ": " + message
		}
		return ", and is " + state
	case *corev1.PersistentVolumeClaim:
		return fmt.Sprintf(", its phase is %s", object.Status.Phase)
	case *corev1.Service:
		if object.Spec.Type == corev1.ServiceTypeLoadBalancer && len(object.Status.LoadBalancer.Ingress) == 0 {
			return ", and its load balancer has no address yet"
		}
	}
	return ""
}

// podTrouble says why a pod that exists isn't ready.
func podTrouble(pod *corev1.Pod) (state, message string, troubled bool) {
	if pod.DeletionTimestamp != nil {
		return "being deleted", "", true
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return "not scheduled", condition.Message, true
		}
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if waiting := status.State.Waiting; waiting != nil && waiting.Reason != "PodInitializing" && waiting.Reason != "ContainerCreating" {
			return waiting.Reason, waiting.Message, true
		}
	}
	if podutil.IsPodReady(pod) || pod.Status.Phase == corev1.PodSucceeded {
		return "", "", false
	}
	if pod.Status.Phase == corev1.PodPending {
		return "pending", pod.Status.Message, true
	}
	return "not ready", "", true
}

// plural is as in "1 pod" and "2 pods".
func plural(count int64, noun string) string {
	if count == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", count, noun)
}
