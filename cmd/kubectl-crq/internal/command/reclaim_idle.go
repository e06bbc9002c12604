// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"k8s.io/kubernetes/pkg/api/v1/pod"
)

// idleness is how a pod does nothing, and since when at the latest.
type idleness struct {
	state, message string
	since          time.Time
}

// idle reports whether a pod has done nothing for long.
func (f *finder) idle(of *corev1.Pod) (idleness, bool) {
	var how idleness
	var idle bool
	switch {
	case of.DeletionTimestamp != nil || isMirror(of):
		return idleness{}, false
	case of.Status.Phase == corev1.PodPending:
		how, idle = pending(of)
	default:
		how, idle = looping(of)
	}
	return how, idle && f.isOld(how.since)
}

// isMirror reports whether a kubelet runs the pod from a file of its node. It is made again if it is deleted, and its
// owner is the Node.
func isMirror(pod *corev1.Pod) bool {
	_, mirrors := pod.Annotations[corev1.MirrorPodAnnotationKey]
	above, owned := ownerOf(pod)
	return mirrors || owned && above.Group == "" && above.Kind == "Node"
}

// pending reports whether a pod hasn't begun. One whose init containers run works: it may restore a backup.
func pending(pod *corev1.Pod) (idleness, bool) {
	since := pod.CreationTimestamp.Time
	for i := range pod.Status.InitContainerStatuses {
		state := &pod.Status.InitContainerStatuses[i].State
		if state.Running != nil {
			return idleness{}, false
		}
		if state.Terminated != nil && state.Terminated.ExitCode == 0 {
			since = later(since, state.Terminated.FinishedAt.Time)
		}
	}
	_, message, _ := podTrouble(pod)
	return idleness{"pending", message, since}, true
}

const (
	crashLoop = "CrashLoopBackOff"
	// A kubelet begins again with short pauses if a container ran for longer than that.
	steadyRun = 10 * time.Minute
)

// looping reports whether a container of a pod restarts again and again, and no other one works. Restarts are counted
// over the pod's whole life, so that only its condition says since when.
func looping(of *corev1.Pod) (idleness, bool) {
	_, ready := pod.GetPodCondition(&of.Status, corev1.PodReady)
	if ready == nil || ready.Status != corev1.ConditionFalse || slices.ContainsFunc(of.Status.ContainerStatuses, works) {
		return idleness{}, false
	}
	for _, status := range slices.Concat(of.Status.InitContainerStatuses, of.Status.ContainerStatuses) {
		if isLooping(status) {
			message := fmt.Sprintf("container %s has restarted %d times in all", status.Name, status.RestartCount)
			return idleness{"crash-looping", message, ready.LastTransitionTime.Time}, true
		}
	}
	return idleness{}, false
}

func works(status corev1.ContainerStatus) bool { return status.Ready && status.State.Running != nil }

// isLooping reports whether a container waits to be restarted after a short run.
func isLooping(status corev1.ContainerStatus) bool {
	if status.State.Waiting == nil || status.State.Waiting.Reason != crashLoop {
		return false
	}
	last := status.LastTerminationState.Terminated
	return last == nil || last.FinishedAt.Sub(last.StartedAt.Time) < steadyRun
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// lives reports whether controllers count on the pod.
func lives(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil && !hasEndedPod(pod) }

func hasEndedPod(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
