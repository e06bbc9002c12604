// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

func TestReclaimOfClaims(t *testing.T) {
	const deletes = "[crq/team requests.storage: 1Gi] kubectl delete persistentvolumeclaim/c -n shop (its data is lost, unless the volume's reclaim policy " +
		"is Retain. Objects of custom resources that mount it aren't looked for.)"
	keptBy := func(names string) []string {
		return []string{"PersistentVolumeClaim/c: no pod uses it. It was created 120m ago, and is kept by " + names + ". [crq/team requests.storage: 1Gi] " +
			"(the pods that mount it may come back. Look at what it holds, and ask those who run them, before you delete it.)"}
	}
	deployment := func(name string, replicas int32) appsv1.Deployment {
		made := *builders.Deployment("shop", name, replicas)
		made.UID = types.UID(name)
		mounting(&made.Spec.Template.Spec, "c")
		return made
	}
	job := func(suspended bool, conditions ...batchv1.JobCondition) batchv1.Job {
		made := *builders.Job("shop", "train")
		made.Spec.Suspend, made.Status.Conditions = ptr.To(suspended), conditions
		mounting(&made.Spec.Template.Spec, "c")
		return made
	}
	cron := func(suspended bool) batchv1.CronJob {
		made := *builders.CronJob("shop", "nightly")
		made.Spec.Suspend = ptr.To(suspended)
		mounting(&made.Spec.JobTemplate.Spec.Template.Spec, "c")
		return made
	}
	pod := func(phase corev1.PodPhase, ended *metav1.Time) corev1.Pod {
		made := oldPod("user", phase)
		mounting(&made.Spec, "c")
		if ended != nil {
			made.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{FinishedAt: *ended},
			}}}
		}
		return made
	}
	unused := []string{"PersistentVolumeClaim/c: no pod uses it. It was created 120m ago. " + deletes}
	stories := map[string]story{
		"nothing mounts it": {func(*reading.Inventory) {}, unused},
		"a pod mounts it":   {func(i *reading.Inventory) { i.Pods = []corev1.Pod{pod(corev1.PodRunning, nil)} }, nil},
		"a pod mounted it until lately": {func(i *reading.Inventory) {
			i.Pods = []corev1.Pod{pod(corev1.PodSucceeded, ptr.To(before(time.Minute)))}
		}, nil},
		"a pod mounted it long ago": {
			func(i *reading.Inventory) {
				i.Pods = []corev1.Pod{pod(corev1.PodFailed, ptr.To(before(90*time.Minute)))}
			}, unused,
		},
		"a pod mounted it, and doesn't say until when": {func(i *reading.Inventory) { i.Pods = []corev1.Pod{pod(corev1.PodFailed, nil)} }, nil},
		"a pod owns it": {
			func(i *reading.Inventory) { i.Claims[0].OwnerReferences = controlledBy("Pod", "used", "used") }, nil,
		},
		"a Deployment of no pods keeps it": {
			func(i *reading.Inventory) { i.Deployments = []appsv1.Deployment{deployment("idle", 0)} }, keptBy("Deployment idle"),
		},
		"one Deployment keeps it, and another one needs it": {
			func(i *reading.Inventory) {
				i.Deployments = []appsv1.Deployment{deployment("blue", 0), deployment("green", 1)}
			}, nil,
		},
		"a Deployment and its older ReplicaSet keep it": {
			func(i *reading.Inventory) {
				set := replicaSet("web-1", 0, "1")
				mounting(&set.Spec.Template.Spec, "c")
				i.Deployments, i.ReplicaSets = []appsv1.Deployment{deployment("web", 0)}, []appsv1.ReplicaSet{set}
			},
			keptBy("Deployment web"),
		},
		"an older template of a Deployment keeps it": {
			func(i *reading.Inventory) {
				set := replicaSet("web-1", 0, "1")
				mounting(&set.Spec.Template.Spec, "c")
				i.Deployments, i.ReplicaSets = []appsv1.Deployment{rolling("", 0)}, []appsv1.ReplicaSet{set}
			},
			keptBy("ReplicaSet web-1"),
		},
		"a ReplicaSet needs it": {
			func(i *reading.Inventory) {
				set := *builders.ReplicaSet("shop", "r")
				set.Spec.Replicas = ptr.To[int32](1)
				mounting(&set.Spec.Template.Spec, "c")
				i.ReplicaSets = []appsv1.ReplicaSet{set}
			},
			nil,
		},
		"a ReplicationController keeps it": {
			func(i *reading.Inventory) {
				made := corev1.ReplicationController{ObjectMeta: builders.Meta("shop", "old")}
				made.Spec.Replicas, made.Spec.Template = ptr.To[int32](0), &corev1.PodTemplateSpec{}
				mounting(&made.Spec.Template.Spec, "c")
				i.Controllers = []corev1.ReplicationController{made}
			},
			keptBy("ReplicationController old"),
		},
		"a DaemonSet needs it": {
			func(i *reading.Inventory) {
				set := appsv1.DaemonSet{ObjectMeta: builders.Meta("shop", "agent")}
				mounting(&set.Spec.Template.Spec, "c")
				i.DaemonSets = []appsv1.DaemonSet{set}
			},
			nil,
		},
		"a Job that is suspended needs it": {func(i *reading.Inventory) { i.Jobs = []batchv1.Job{job(true)} }, nil},
		"a Job that goes on needs it":      {func(i *reading.Inventory) { i.Jobs = []batchv1.Job{job(false)} }, nil},
		"a Job that has ended doesn't": {
			func(i *reading.Inventory) {
				i.Jobs = []batchv1.Job{job(false, batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: before(time.Minute)})}
			},
			unused,
		},
		"a CronJob needs it":                   {func(i *reading.Inventory) { i.CronJobs = []batchv1.CronJob{cron(false)} }, nil},
		"a CronJob that is suspended keeps it": {func(i *reading.Inventory) { i.CronJobs = []batchv1.CronJob{cron(true)} }, keptBy("CronJob nightly")},
		"two that rest keep it": {
			func(i *reading.Inventory) {
				i.Deployments, i.CronJobs = []appsv1.Deployment{deployment("idle", 0)}, []batchv1.CronJob{cron(true)}
			},
			keptBy("Deployment idle and CronJob nightly"),
		},
	}
	for _, resource := range templated() {
		stories["nobody may read "+resource] = story{func(i *reading.Inventory) { i.Forbidden = []string{resource} }, nil}
	}
	for name, one := range stories {
		objects := one.objects
		stories[name] = story{func(i *reading.Inventory) {
			i.Claims = []corev1.PersistentVolumeClaim{oldClaim("c")}
			objects(i)
		}, one.want}
	}
	wantFindings(t, stories)
}

func TestReclaimOfAStatefulSetsClaims(t *testing.T) {
	wantFindings(t, map[string]story{
		"ordinal 0 is wanted, and ordinal 3 isn't": {
			func(i *reading.Inventory) {
				i.StatefulSets = []appsv1.StatefulSet{database(1)}
				i.Claims = []corev1.PersistentVolumeClaim{oldClaim("data-db-0"), oldClaim("data-db-3")}
			},
			[]string{"PersistentVolumeClaim/data-db-3: no pod uses it. It was created 120m ago, and is kept by StatefulSet db, ordinal 3. " +
				"[crq/team requests.storage: 1Gi] (the pods that mount it may come back. Look at what it holds, and ask those who run them, " +
				"before you delete it.)"},
		},
	})
}
