// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/utils/ptr"
)

// scopeFacts is all that the scopes of quotas look at in an object. A stand-in
// is built from it that matches the same quotas as the object.
type scopeFacts struct {
	// Of a pod.
	terminating    bool
	bestEffort     bool
	crossNamespace bool
	priorityClass  string

	// Of a claim: its volume attributes class as wanted, as it is, and as it
	// is being changed to. Empty for none.
	wantedClass, currentClass, targetClass string

	// Of a resource claim: the evaluator that measured it.
	claims *claimEvaluator
}

// factsOf returns the parts of an object that scopes look at. For all but pods
// and persistent volume claims that is nothing: no scope matches them.
func factsOf(evaluator quota.Evaluator, object runtime.Object) (scopeFacts, error) {
	switch object := object.(type) {
	case *corev1.Pod:
		return factsOfPod(evaluator, object)
	case *corev1.PersistentVolumeClaim:
		return factsOfVolumeClaim(object), nil
	}
	return scopeFacts{}, nil
}

// factsOfPod asks upstream for the scopes that are a matter of yes or no. The
// others are their opposites, and priority classes.
func factsOfPod(evaluator quota.Evaluator, pod *corev1.Pod) (scopeFacts, error) {
	matched, err := evaluator.MatchingScopes(pod, []corev1.ScopedResourceSelectorRequirement{
		{ScopeName: corev1.ResourceQuotaScopeTerminating, Operator: corev1.ScopeSelectorOpExists},
		{ScopeName: corev1.ResourceQuotaScopeBestEffort, Operator: corev1.ScopeSelectorOpExists},
		{ScopeName: corev1.ResourceQuotaScopeCrossNamespacePodAffinity, Operator: corev1.ScopeSelectorOpExists},
	})
	if err != nil {
		return scopeFacts{}, fmt.Errorf("finding the scopes of a pod: %w", err)
	}
	facts := scopeFacts{priorityClass: pod.Spec.PriorityClassName}
	for _, scope := range matched {
		switch scope.ScopeName {
		case corev1.ResourceQuotaScopeTerminating:
			facts.terminating = true
		case corev1.ResourceQuotaScopeBestEffort:
			facts.bestEffort = true
		case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
			facts.crossNamespace = true
		default: // Not asked for.
		}
	}
	return facts, nil
}

func factsOfVolumeClaim(claim *corev1.PersistentVolumeClaim) scopeFacts {
	facts := scopeFacts{
		wantedClass:  ptr.Deref(claim.Spec.VolumeAttributesClassName, ""),
		currentClass: ptr.Deref(claim.Status.CurrentVolumeAttributesClassName, ""),
	}
	if claim.Status.ModifyVolumeStatus != nil {
		facts.targetClass = claim.Status.ModifyVolumeStatus.TargetVolumeAttributesClassName
	}
	return facts
}

// standIn returns an object of the type that a resource's evaluator needs and
// that matches the scopes that the facts were taken from. It is nil if the
// evaluator doesn't look at the object.
func (f scopeFacts) standIn(needed runtime.Object) runtime.Object {
	switch needed.(type) {
	case *corev1.Pod:
		return f.standInPod()
	case *corev1.PersistentVolumeClaim:
		return f.standInVolumeClaim()
	}
	return nil
}

func (f scopeFacts) standInPod() *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Spec.PriorityClassName = f.priorityClass
	pod.Status.QOSClass = corev1.PodQOSBurstable
	if f.bestEffort {
		pod.Status.QOSClass = corev1.PodQOSBestEffort
	}
	if f.terminating {
		pod.Spec.ActiveDeadlineSeconds = ptr.To[int64](1)
	}
	if f.crossNamespace {
		everywhere := corev1.PodAffinityTerm{NamespaceSelector: &metav1.LabelSelector{}}
		pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{everywhere},
		}}
	}
	return pod
}

func (f scopeFacts) standInVolumeClaim() *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{}
	claim.Spec.VolumeAttributesClassName = &f.wantedClass
	claim.Status.CurrentVolumeAttributesClassName = &f.currentClass
	claim.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: f.targetClass}
	return claim
}
