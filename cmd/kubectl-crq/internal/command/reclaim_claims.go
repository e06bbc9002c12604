// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
)

// unusedClaims finds claims that no pod mounts or has mounted of late, and that no workload would mount by itself.
func (f *finder) unusedClaims() ([]candidate, error) {
	used := f.mounted()
	var found []candidate
	for i := range f.Claims {
		claim := &f.Claims[i]
		if _, mounted := used[claim.Name]; mounted || claim.DeletionTimestamp != nil || metav1.GetControllerOf(claim) != nil ||
			!f.isOld(claim.CreationTimestamp.Time) {
			continue
		}
		keepers := f.keepersOf(claim.Name)
		if slices.ContainsFunc(keepers, func(one keeper) bool { return one.appetite == wants }) {
			continue
		}
		found = append(found, f.unusedClaim(claim, keepers))
	}
	return found, nil
}

// unusedClaim is a finding. Nothing says since when a claim is unused.
func (f *finder) unusedClaim(claim *corev1.PersistentVolumeClaim, keepers []keeper) candidate {
	one := candidate{holds: []held{{corev1.Resource("persistentvolumeclaims"), claim}}, finding: render.Finding{
		ObjectName: render.ObjectName{Kind: "PersistentVolumeClaim", Name: claim.Name}, Finding: render.ClaimUnused,
		Message: "no pod uses it. It was created " + f.ago(claim.CreationTimestamp.Time) + " ago",
	}}
	if len(keepers) == 0 {
		one.finding.Message += "."
		one.finding.Command = kubectl(claim.Namespace, "delete", "persistentvolumeclaim/"+claim.Name)
		one.finding.Caution = "its data is lost, unless the volume's reclaim policy is Retain. " +
			"Objects of custom resources that mount it aren't looked for."
		return one
	}
	var names []string
	for _, keeper := range keepers {
		names = append(names, keeper.text)
	}
	one.finding.Message += ", and is kept by " + strings.Join(names, " and ") + "."
	one.finding.Caution = "the pods that mount it may come back. Look at what it holds, and ask those who run them, before you delete it."
	return one
}

// mounted has the claims that pods use, or used until lately.
func (f *finder) mounted() map[string]struct{} {
	used := map[string]struct{}{}
	for i := range f.Pods {
		pod := &f.Pods[i]
		if ended := endOfPod(pod); hasEndedPod(pod) && !ended.IsZero() && f.isOld(ended) {
			continue
		}
		for _, name := range claimsOf(&pod.Spec) {
			used[name] = struct{}{}
		}
	}
	return used
}

// endOfPod returns when a pod that has ended did so at the latest; zero if its status doesn't say.
func endOfPod(pod *corev1.Pod) time.Time {
	var at time.Time
	for i := range pod.Status.ContainerStatuses {
		if ended := pod.Status.ContainerStatuses[i].State.Terminated; ended != nil {
			at = later(at, ended.FinishedAt.Time)
		}
	}
	for _, condition := range pod.Status.Conditions {
		at = later(at, condition.LastTransitionTime.Time)
	}
	return at
}

func claimsOf(spec *corev1.PodSpec) []string {
	var names []string
	for _, volume := range spec.Volumes {
		if volume.PersistentVolumeClaim != nil {
			names = append(names, volume.PersistentVolumeClaim.ClaimName)
		}
	}
	return names
}

// keeper is a workload whose pods mount a claim.
type keeper struct {
	text     string
	appetite appetite
}

// keepersOf returns all workloads that a claim may be kept for. A ReplicaSet isn't named beside its Deployment.
func (f *finder) keepersOf(claim string) []keeper {
	var keepers []keeper
	for i := range f.workloads {
		one := &f.workloads[i]
		if one.appetite == isOver {
			continue
		}
		if set, ok := one.object.(*appsv1.StatefulSet); ok {
			if ordinal, of := ordinalOfClaim(set, claim); of {
				keepers = append(keepers, keeper{fmt.Sprintf("%s, ordinal %d", one.text(), ordinal), appetiteAt(set, ordinal)})
				continue
			}
		}
		if mounts(one, claim) && !f.isMountedAbove(one, claim) {
			keepers = append(keepers, keeper{one.text(), one.appetite})
		}
	}
	return keepers
}

func mounts(of *workload, claim string) bool {
	return slices.Contains(claimsOf(&of.template.Spec), claim)
}

// isMountedAbove reports whether the workload rests, and the one that made it mounts the claim, too.
func (f *finder) isMountedAbove(of *workload, claim string) bool {
	reference, owned := ownerOf(of.object)
	if !owned || of.appetite != rests {
		return false
	}
	above := f.known(reference)
	return above != nil && mounts(above, claim)
}

// ordinalOfClaim returns for which pod a StatefulSet's template made a claim.
func ordinalOfClaim(set *appsv1.StatefulSet, claim string) (int, bool) {
	for i := range set.Spec.VolumeClaimTemplates {
		rest, ok := strings.CutPrefix(claim, set.Spec.VolumeClaimTemplates[i].Name+"-"+set.Name+"-")
		if !ok {
			continue
		}
		if ordinal, err := strconv.Atoi(rest); err == nil && strconv.Itoa(ordinal) == rest {
			return ordinal, true
		}
	}
	return 0, false
}

func appetiteAt(set *appsv1.StatefulSet, ordinal int) appetite {
	first := firstOrdinal(set)
	if ordinal >= first && ordinal < first+int(ptr.Deref(set.Spec.Replicas, 1)) {
		return wants
	}
	return rests
}
