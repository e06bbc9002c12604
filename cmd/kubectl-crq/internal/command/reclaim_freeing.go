// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
)

// freeing returns the command that frees what the idle pods of a maker hold, and what else it does. If nobody knows
// one that is safe, it returns no command, and what to look at.
func (f *finder) freeing(of *maker) (command, caution string) {
	switch {
	case of.isBare():
		return kubectl(of.pods[0].Namespace, "delete", "pod/"+of.name.Name), ""
	case of.workload == nil:
		return "", askMaker(of.name)
	}
	switch object := of.workload.object.(type) {
	case *appsv1.StatefulSet:
		return f.freeingSet(of, object)
	case *appsv1.DaemonSet:
		return "", "a DaemonSet makes a pod for each node that it selects. Look at its nodeSelector, its tolerations and what it requests."
	}
	return f.freeingCopies(of)
}

// freeingCopies is for workloads that don't tell their pods apart. Their controllers end those first that aren't ready.
func (f *finder) freeingCopies(of *maker) (command, caution string) {
	name, namespace := of.name.Name, of.pods[0].Namespace
	switch kind := of.workload.kind.Kind; kind {
	case "Deployment", "ReplicaSet", "ReplicationController":
		if f.remaining(of) >= of.workload.replicas() {
			return "", "it has more pods than it wants, as in a rollout, so that scaling it frees nothing. Look at how the rollout goes."
		}
		return scaling(namespace, strings.ToLower(kind)+"/"+name, f.remaining(of)), ""
	case "Job":
		return kubectl(namespace, "patch", "job/"+name, "--type=merge", "-p", `{"spec":{"suspend":true}}`),
			"it ends all pods of the Job, also those that run. It goes on if somebody sets spec.suspend to false."
	}
	return "", askMaker(of.name)
}

func scaling(namespace, target string, replicas int) string {
	return kubectl(namespace, "scale", target, "--replicas="+strconv.Itoa(replicas))
}

// remaining returns how many pods a workload has that do something.
func (f *finder) remaining(of *maker) int { return max(0, f.living[of.decides.uid]-len(of.pods)) }

// freeingSet scales down to the first pod that does nothing: a StatefulSet ends its last pods first.
func (f *finder) freeingSet(of *maker, set *appsv1.StatefulSet) (command, caution string) {
	if deletesClaims(set) {
		return "", "if it is scaled down, the claims of the pods that end are deleted, and their data is lost: " +
			"its persistentVolumeClaimRetentionPolicy says so. Look at why its pods don't run."
	}
	first, others := ordinalOf(of.pods[0].Name), 0
	for _, pod := range of.pods {
		first = min(first, ordinalOf(pod.Name))
	}
	for _, pod := range f.pods[of.decides.uid] {
		if ordinalOf(pod.Name) >= first {
			others++
		}
	}
	if others -= len(of.pods); others > 0 {
		caution = fmt.Sprintf("it ends %s behind the first idle one, too.", plural(int64(others), "pod"))
	}
	return scaling(set.Namespace, "statefulset/"+set.Name, max(0, first-firstOrdinal(set))), caution
}

// deletesClaims reports whether a StatefulSet that is scaled down loses data.
func deletesClaims(set *appsv1.StatefulSet) bool {
	policy := set.Spec.PersistentVolumeClaimRetentionPolicy
	deletes := policy != nil && policy.WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	return deletes && len(set.Spec.VolumeClaimTemplates) > 0
}

func firstOrdinal(set *appsv1.StatefulSet) int {
	if set.Spec.Ordinals == nil {
		return 0
	}
	return int(set.Spec.Ordinals.Start)
}

func ordinalOf(name string) int {
	number, err := strconv.Atoi(name[strings.LastIndex(name, "-")+1:])
	if err != nil {
		return 0
	}
	return number
}
