// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apiserver/pkg/admission"
)

// Kubernetes' evaluator measures a pod by what its node allocated to it, and not
// by what it asks for, as long as a condition says that the node found the resize
// infeasible. It believes a condition of any age. So the next resize, which the
// node has not seen, would cost nothing until the node takes the condition back.
//
// Here the condition is believed only if it is about the pod's present
// generation. The API server sets a pod's generation at each change of its spec
// and at least 1 at its creation; one that keeps no generations has conditions
// that nobody can date.

// believable returns the pod without a condition that says of an earlier
// generation that its resize is infeasible. It is the pod itself if there is none.
func believable(pod *corev1.Pod) *corev1.Pod {
	return withoutInfeasible(pod, func(condition corev1.PodCondition) bool {
		return pod.Generation == 0 || condition.ObservedGeneration != pod.Generation
	})
}

func withoutInfeasible(pod *corev1.Pod, which func(corev1.PodCondition) bool) *corev1.Pod {
	drop := func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodResizePending && condition.Reason == corev1.PodReasonInfeasible && which(condition)
	}
	if !slices.ContainsFunc(pod.Status.Conditions, drop) {
		return pod
	}
	without := *pod
	without.Status.Conditions = slices.DeleteFunc(slices.Clone(pod.Status.Conditions), drop)
	return &without
}

// resizeAttributes returns the request with a pod that is charged for all that it
// asks for, if it asks for something else than before: no node has seen that. What
// it is compared with is the pod before the request, as it is counted.
func resizeAttributes(a admission.Attributes) admission.Attributes {
	pod, isPod := a.GetObject().(*corev1.Pod)
	old, wasPod := a.GetOldObject().(*corev1.Pod)
	if !isPod || !wasPod || pod == nil || old == nil || apiequality.Semantic.DeepEqual(pod.Spec, old.Spec) {
		return a
	}
	asked := withoutInfeasible(pod, func(corev1.PodCondition) bool { return true })
	if asked == pod {
		return a
	}
	return countedRequest{Attributes: a, object: asked, old: old}
}
