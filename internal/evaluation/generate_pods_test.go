// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

// chance is true once in n draws, or nearly so.
func chance(t *rapid.T, n int, label string) bool {
	return rapid.IntRange(1, n).Draw(t, label) == 1
}

// anyAmount draws amounts in all forms, some of them odd and some very large.
func anyAmount() *rapid.Generator[resource.Quantity] {
	return rapid.Map(rapid.SampledFrom([]string{
		"0", "1", "2", "100m", "1500m", "0.0000001", "64Mi", "1Gi", "1.0005Ki", "1e3", "10M",
		"9223372036854775807", "8Ei", "4000000000000000000000000",
	}), resource.MustParse)
}

// anyList draws a resource list with some of these names, or nil.
func anyList(names ...corev1.ResourceName) *rapid.Generator[corev1.ResourceList] {
	return rapid.Custom(func(t *rapid.T) corev1.ResourceList {
		if chance(t, 4, "none") {
			return nil
		}
		list := corev1.ResourceList{}
		for _, name := range names {
			if rapid.Bool().Draw(t, "with "+string(name)) {
				list[name] = anyAmount().Draw(t, string(name))
			}
		}
		return list
	})
}

func anyComputeList() *rapid.Generator[corev1.ResourceList] {
	return anyList("cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "vndr.example/gpu",
		"deviceclass.resource.kubernetes.io/gpu", "unknown.kubernetes.io/thing")
}

func anyRequirements() *rapid.Generator[corev1.ResourceRequirements] {
	return rapid.Custom(func(t *rapid.T) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{
			Requests: anyComputeList().Draw(t, "requests"),
			Limits:   anyComputeList().Draw(t, "limits"),
		}
	})
}

// anyContainers draws containers; the restartable ones among init containers
// are sidecars.
func anyContainers(prefix string, least, most int) *rapid.Generator[[]corev1.Container] {
	return rapid.Custom(func(t *rapid.T) []corev1.Container {
		var containers []corev1.Container
		for i := range rapid.IntRange(least, most).Draw(t, "number of "+prefix) {
			container := corev1.Container{Name: fmt.Sprint(prefix, i), Resources: anyRequirements().Draw(t, "resources")}
			if prefix == "init" && rapid.Bool().Draw(t, "sidecar") {
				container.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
			}
			containers = append(containers, container)
		}
		return containers
	})
}

func anyPod() *rapid.Generator[*corev1.Pod] {
	return rapid.Custom(func(t *rapid.T) *corev1.Pod {
		pod := podOf(anyContainers("app", 1, 2).Draw(t, "containers")...)
		pod.Spec.InitContainers = anyContainers("init", 0, 3).Draw(t, "init containers")
		pod.Spec.PriorityClassName = rapid.SampledFrom([]string{"", "high", "low"}).Draw(t, "priority class")
		pod.Spec.ActiveDeadlineSeconds = rapid.SampledFrom([]*int64{nil, ptr.To[int64](0), ptr.To[int64](60), ptr.To[int64](-1)}).Draw(t, "deadline")
		if chance(t, 3, "overhead") {
			pod.Spec.Overhead = anyComputeList().Draw(t, "overhead of the runtime")
		}
		if chance(t, 3, "resources of the pod") {
			pod.Spec.Resources = ptr.To(anyRequirements().Draw(t, "pod resources"))
		}
		pod.Spec.Affinity = anyAffinity().Draw(t, "affinity")
		pod.Generation = rapid.Int64Range(0, 2).Draw(t, "generation")
		pod.Status = anyPodStatus(pod).Draw(t, "status")
		if chance(t, 3, "being deleted") {
			beDeleted(t, pod)
		}
		return pod
	})
}

// beDeleted sets an end of grace that is within a minute from now.
func beDeleted(t *rapid.T, pod *corev1.Pod) {
	seconds := rapid.IntRange(-60, 60).Draw(t, "deleted at")
	pod.DeletionTimestamp = &metav1.Time{Time: testNow().Add(time.Duration(seconds) * time.Second)}
	if !chance(t, 5, "no grace period") {
		pod.DeletionGracePeriodSeconds = ptr.To(rapid.Int64Range(0, 60).Draw(t, "grace"))
	}
}

// anyPodStatus draws phases, QoS classes and the traces of resizes.
func anyPodStatus(pod *corev1.Pod) *rapid.Generator[corev1.PodStatus] {
	return rapid.Custom(func(t *rapid.T) corev1.PodStatus {
		status := corev1.PodStatus{
			Phase: rapid.SampledFrom([]corev1.PodPhase{"", corev1.PodPending, corev1.PodRunning, corev1.PodRunning,
				corev1.PodSucceeded, corev1.PodFailed}).Draw(t, "phase"),
			QOSClass: rapid.SampledFrom([]corev1.PodQOSClass{"", "", corev1.PodQOSBestEffort, corev1.PodQOSBurstable,
				corev1.PodQOSGuaranteed}).Draw(t, "QoS class"),
		}
		if chance(t, 3, "resize pending") {
			status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending,
				Reason:             rapid.SampledFrom([]string{corev1.PodReasonInfeasible, corev1.PodReasonDeferred}).Draw(t, "reason"),
				ObservedGeneration: rapid.Int64Range(max(pod.Generation-1, 0), pod.Generation).Draw(t, "observed generation")}}
		}
		status.ContainerStatuses = anyContainerStatuses(t, pod.Spec.Containers)
		status.InitContainerStatuses = anyContainerStatuses(t, pod.Spec.InitContainers)
		return status
	})
}

func anyContainerStatuses(t *rapid.T, containers []corev1.Container) []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for _, container := range containers {
		if chance(t, 2, "no status") {
			continue
		}
		status := corev1.ContainerStatus{Name: container.Name, AllocatedResources: anyComputeList().Draw(t, "allocated")}
		if rapid.Bool().Draw(t, "actuated") {
			status.Resources = ptr.To(anyRequirements().Draw(t, "actual resources"))
		}
		statuses = append(statuses, status)
	}
	return statuses
}

// anyAffinity draws terms of all four kinds that stay in the pod's namespace,
// name other namespaces, or select them.
func anyAffinity() *rapid.Generator[*corev1.Affinity] {
	return rapid.Custom(func(t *rapid.T) *corev1.Affinity {
		if !chance(t, 3, "with affinity") {
			return nil
		}
		term := rapid.SampledFrom([]corev1.PodAffinityTerm{
			{TopologyKey: "zone"}, {Namespaces: []string{"team-b"}}, {NamespaceSelector: &metav1.LabelSelector{}},
		}).Draw(t, "term")
		terms := []corev1.PodAffinityTerm{{TopologyKey: "host"}, term}
		weighted := []corev1.WeightedPodAffinityTerm{{PodAffinityTerm: term}}
		return rapid.SampledFrom([]*corev1.Affinity{
			{},
			{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}},
			{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: weighted}},
			{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}},
			{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: weighted}},
		}).Draw(t, "kind of affinity")
	})
}
