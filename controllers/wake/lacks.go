// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package wake

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sharedquota/shared-quota-operator/internal/waiting"
)

// lacks returns how many objects a workload is short of, by its spec and status. For a Deployment and a
// CronJob that can't be told from these: they lack one, unless they should make none.
func lacks(kind waiting.Kind, workload *unstructured.Unstructured) int64 {
	if workload.GetDeletionTimestamp() != nil {
		return 0
	}
	spec := func(otherwise int64, path ...string) int64 { return number(workload, otherwise, "spec", path) }
	status := func(path ...string) int64 { return number(workload, 0, "status", path) }
	switch kind {
	case waiting.ReplicaSet, waiting.ReplicationController:
		return spec(1, "replicas") - status("replicas")
	case waiting.StatefulSet:
		short := spec(1, "replicas") - status("replicas")
		if policy, _, _ := unstructured.NestedString(workload.Object, "spec", "podManagementPolicy"); policy != "Parallel" {
			return min(short, 1) // one after the other
		}
		return short
	case waiting.DaemonSet:
		return status("desiredNumberScheduled") - status("currentNumberScheduled")
	case waiting.Job:
		return lacksOfJob(workload)
	case waiting.Pod:
		return lacksOfPod(workload)
	case waiting.Deployment, waiting.CronJob:
		if isSet(workload, "paused") || isSet(workload, "suspend") {
			return 0
		}
		return 1
	default:
		return 0
	}
}

// lacksOfJob returns how many pods a Job is short of.
func lacksOfJob(job *unstructured.Unstructured) int64 {
	if isSet(job, "suspend") || isFinished(job) {
		return 0
	}
	status := func(field string) int64 { return number(job, 0, "status", []string{field}) }
	atOnce := number(job, 1, "spec", []string{"parallelism"})
	completions := number(job, 0, "spec", []string{"completions"})
	if completions == 0 { // a work queue: it ends with the pods that it has once one has succeeded
		if status("succeeded") > 0 {
			return 0
		}
		return atOnce - status("active")
	}
	failed, _, _ := unstructured.NestedString(job.Object, "status", "failedIndexes")
	return min(atOnce, completions-status("succeeded")-indexes(failed)) - status("active")
}

// lacksOfPod returns how many claims a pod may be short of: all of its ephemeral volumes, because the status doesn't tell, and
// those of devices that the status doesn't name.
func lacksOfPod(pod *unstructured.Unstructured) int64 {
	phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	if phase == string(corev1.PodSucceeded) || phase == string(corev1.PodFailed) {
		return 0
	}
	having := func(field string, path ...string) (count int64) {
		all, _, _ := unstructured.NestedSlice(pod.Object, path...)
		for _, one := range all {
			if fields, _ := one.(map[string]any); fields[field] != nil {
				count++
			}
		}
		return count
	}
	devices := having("resourceClaimTemplateName", "spec", "resourceClaims") - having("name", "status", "resourceClaimStatuses")
	return having("ephemeral", "spec", "volumes") + max(devices, 0)
}

// indexes returns how many indexes a text such as "1,3-5" names.
func indexes(text string) (count int64) {
	for interval := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(interval, "-")
		from, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			continue
		}
		to := from
		if isRange {
			to, err = strconv.ParseInt(last, 10, 64)
		}
		if err == nil {
			count += to - from + 1
		}
	}
	return count
}

// made returns the objects that are made for a workload whose status doesn't say whether it lacks one; empty for the other
// kinds.
func made(kind waiting.Kind) schema.GroupVersionResource {
	switch kind {
	case waiting.Deployment:
		return waiting.ReplicaSet.Resource()
	case waiting.CronJob:
		return waiting.Job.Resource()
	case waiting.Pod:
		return volumeClaims()
	default:
		return schema.GroupVersionResource{}
	}
}

// isFinished reports whether a Job makes no more pods.
func isFinished(job *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(condition any) bool {
		fields, _ := condition.(map[string]any)
		isTrue := fields["status"] == string(corev1.ConditionTrue)
		switch batchv1.JobConditionType(fmt.Sprint(fields["type"])) {
		case batchv1.JobComplete, batchv1.JobFailed, batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet:
			return isTrue
		default:
			return false
		}
	})
}

// isSet reports whether a field of the spec is true.
func isSet(workload *unstructured.Unstructured, field string) bool {
	set, _, _ := unstructured.NestedBool(workload.Object, "spec", field)
	return set
}

func number(workload *unstructured.Unstructured, otherwise int64, part string, path []string) int64 {
	value, found, err := unstructured.NestedInt64(workload.Object, append([]string{part}, path...)...)
	if err != nil || !found {
		return otherwise
	}
	return value
}
