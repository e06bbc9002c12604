// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/utils/clock"
)

// podEvaluator measures pods without changing them, and believes no condition
// that is out of date.
//
// Kubernetes 1.37 adds the overhead of a pod to its pod-level resources in
// place where an amount doesn't fit an int64, and so measures more each time.
type podEvaluator struct {
	quota.Evaluator
	// gullible: conditions are believed however old they are, as Kubernetes does.
	gullible bool
}

func newPodEvaluator(clock clock.Clock) quota.Evaluator {
	return podEvaluator{Evaluator: core.NewPodEvaluator(nil, clock)}
}

// Usage implements quota.Evaluator.
func (p podEvaluator) Usage(object runtime.Object) (corev1.ResourceList, error) {
	pod, isPod := object.(*corev1.Pod)
	if !isPod || pod == nil {
		return p.Evaluator.Usage(object)
	}
	if !p.gullible {
		pod = believable(pod)
	}
	if pod.Spec.Resources != nil && pod.Spec.Overhead != nil {
		pod = pod.DeepCopy()
	}
	return p.Evaluator.Usage(pod)
}

// Kubernetes' evaluator measures a pod by the resources that its node allocated
// to it, and not by its requests, as long as a condition says that the node found
// the resize infeasible. It believes a condition of any age. So the next resize,
// which the node has not seen, would cost nothing until the node takes the
// condition back.
//
// Here the condition is believed only if it is about the pod's present
// generation. The API server sets a pod's generation at each change of its spec
// and at least 1 at its creation; an API server that keeps no generations has
// conditions that can't be dated.

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
// asks for, if it asks for something else than before: no node has seen that. It
// is compared with the pod before the request, as it is counted.
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
