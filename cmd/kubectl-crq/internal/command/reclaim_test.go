// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
)

func TestReclaimOfPods(t *testing.T) {
	young := oldPod("young", corev1.PodPending)
	young.CreationTimestamp = before(time.Minute)
	wantFindings(t, map[string]story{
		"a bare pod has been pending for long, another one not": {
			func(i *reading.Inventory) { i.Pods = []corev1.Pod{oldPod("alone", corev1.PodPending), young} },
			[]string{"Pod/alone: pending for 120m. [crq/team count/pods: 1, pods: 1, requests.cpu: 100m] kubectl delete pod/alone -n shop"},
		},
		"pods of a Deployment do nothing, and one works": {
			func(i *reading.Inventory) {
				i.Deployments = []appsv1.Deployment{rolling("NewReplicaSetAvailable", time.Hour)}
				i.ReplicaSets = []appsv1.ReplicaSet{replicaSet("web-1", 3, "1")}
				i.Pods = []corev1.Pod{
					oldPod("a", corev1.PodPending, "ReplicaSet", "web-1"), restarting(oldPod("b", "", "ReplicaSet", "web-1"), 30, time.Second),
					oldPod("c", corev1.PodRunning, "ReplicaSet", "web-1"),
				}
			},
			[]string{"Deployment/web: 1 pod crash-looping, 1 pod pending, for up to 120m: container app has restarted 30 times in all. " +
				"[crq/team count/pods: 2, pods: 2, requests.cpu: 200m] kubectl scale deployment/web --replicas=1 -n shop"},
		},
		"a Deployment has more pods than it wants": {
			func(i *reading.Inventory) {
				i.Deployments = []appsv1.Deployment{rolling("ReplicaSetUpdated", time.Minute)}
				i.ReplicaSets = []appsv1.ReplicaSet{replicaSet("web-1", 2, "1"), replicaSet("web-2", 1, "2")}
				i.ReplicaSets[1].CreationTimestamp = before(time.Minute)
				i.Pods = []corev1.Pod{
					ready(oldPod("a", "", "ReplicaSet", "web-1")), ready(oldPod("b", "", "ReplicaSet", "web-1")), oldPod("c", corev1.PodPending, "ReplicaSet", "web-2"),
				}
			},
			[]string{"Deployment/web: 1 pod pending, for up to 120m. [crq/team count/pods: 1, pods: 1, requests.cpu: 100m] " +
				"(it has more pods than it wants, as in a rollout, so that scaling it frees nothing. Look at how the rollout goes.)"},
		},
		"a container that runs for long between restarts doesn't loop": {
			func(i *reading.Inventory) { i.Pods = []corev1.Pod{restarting(oldPod("steady", ""), 300, time.Hour)} }, nil,
		},
		"a pod was ready a minute ago, whatever it has restarted in a year": {
			func(i *reading.Inventory) {
				pod := restarting(oldPod("recent", ""), 300, time.Second)
				pod.CreationTimestamp, pod.Status.Conditions = before(365*24*time.Hour), readySince(corev1.ConditionFalse, time.Minute)
				i.Pods = []corev1.Pod{pod}
			},
			nil,
		},
		"a pod loops since it was ready last, and not since its creation": {
			func(i *reading.Inventory) {
				pod := restarting(oldPod("a", ""), 17, time.Second)
				pod.CreationTimestamp = before(300 * 24 * time.Hour)
				i.Pods = []corev1.Pod{pod}
			},
			[]string{"Pod/a: crash-looping for 90m: container app has restarted 17 times in all. " +
				"[crq/team count/pods: 1, pods: 1, requests.cpu: 100m] kubectl delete pod/a -n shop"},
		},
		"a sidecar loops beside a container that works": {
			func(i *reading.Inventory) {
				pod := restarting(oldPod("a", ""), 30, time.Second)
				pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
					Name: "worker", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: before(2 * time.Hour)}},
				})
				i.Pods = []corev1.Pod{pod}
			},
			nil,
		},
		"an init container restores a backup": {
			func(i *reading.Inventory) {
				pod := oldPod("restore", corev1.PodPending)
				pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{
					Name: "download", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: before(2 * time.Hour)}},
				}}
				i.Pods = []corev1.Pod{pod}
			},
			nil,
		},
		"an init container has worked until a minute ago": {
			func(i *reading.Inventory) {
				pod := oldPod("restored", corev1.PodPending)
				pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{
					Name: "download", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: before(time.Minute)}},
				}}
				i.Pods = []corev1.Pod{pod}
			},
			nil,
		},
		"a kubelet mirrors a pod of its node": {
			func(i *reading.Inventory) {
				proxy, etcd := restarting(oldPod("kube-proxy-node-1", ""), 30, time.Second), oldPod("etcd-node-1", corev1.PodPending)
				proxy.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "node-1", UID: "n", Controller: ptr.To(true)}}
				etcd.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
				i.Pods = []corev1.Pod{proxy, etcd}
			},
			nil,
		},
		"a StatefulSet is scaled down to its first idle pod": {
			func(i *reading.Inventory) {
				i.StatefulSets = []appsv1.StatefulSet{database(3)}
				i.Pods = []corev1.Pod{
					oldPod("db-0", corev1.PodRunning, "StatefulSet", "db"), oldPod("db-1", corev1.PodPending, "StatefulSet", "db"),
					oldPod("db-2", corev1.PodRunning, "StatefulSet", "db"),
				}
			},
			[]string{"StatefulSet/db: 1 pod pending, for up to 120m. [crq/team count/pods: 1, pods: 1, requests.cpu: 100m] " +
				"kubectl scale statefulset/db --replicas=1 -n shop (it ends 1 pod behind the first idle one, too.)"},
		},
		"a StatefulSet would delete the claims of the pods that end": {
			func(i *reading.Inventory) {
				set := database(3)
				set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
					WhenScaled: appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
				}
				i.StatefulSets = []appsv1.StatefulSet{set}
				i.Pods = []corev1.Pod{oldPod("db-0", corev1.PodPending, "StatefulSet", "db"), oldPod("db-1", corev1.PodRunning, "StatefulSet", "db")}
			},
			[]string{"StatefulSet/db: 1 pod pending, for up to 120m. [crq/team count/pods: 1, pods: 1, requests.cpu: 100m] " +
				"(if it is scaled down, the claims of the pods that end are deleted, and their data is lost: " +
				"its persistentVolumeClaimRetentionPolicy says so. Look at why its pods don't run.)"},
		},
		"most of the tightest resource comes first": {
			func(i *reading.Inventory) {
				large := oldPod("zz-large", corev1.PodPending)
				large.Spec.Containers[0].Resources.Requests = amounts("cpu", "1")
				i.Pods = []corev1.Pod{oldPod("small", corev1.PodPending), large}
				i.Services = []corev1.Service{balancer("a")}
			},
			[]string{
				"Pod/zz-large: pending for 120m. [crq/team count/pods: 1, pods: 1, requests.cpu: 1] kubectl delete pod/zz-large -n shop",
				"Pod/small: pending for 120m. [crq/team count/pods: 1, pods: 1, requests.cpu: 100m] kubectl delete pod/small -n shop",
				"Service/a: no endpoint behind the load balancer is ready; since when isn't known. It was created 300d ago. [crq/team services.loadbalancers: 1] " +
					"kubectl delete service/a -n shop (its address is lost.)",
			},
		},
		"no quota limits it": {
			func(i *reading.Inventory) {
				i.Limits.Views = []quotav1.LocalResourceQuota{view("team", amounts("configmaps", "1"), amounts("configmaps", "1"), nil)}
				i.Pods = []corev1.Pod{oldPod("alone", corev1.PodPending)}
			},
			nil,
		},
		"it is out of the quota's scope": {
			func(i *reading.Inventory) {
				i.Limits.Views[0].Status.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeTerminating}
				i.Pods = []corev1.Pod{oldPod("alone", corev1.PodPending)}
			},
			nil,
		},
	})
}

func TestReclaimNamesTheTightestResource(t *testing.T) {
	found, err := findIdle(limited(func(i *reading.Inventory) {
		i.Pods, i.Forbidden = []corev1.Pod{oldPod("alone", corev1.PodPending)}, []string{"jobs"}
	}), newMeter(clocktesting.NewFakeClock(noon)), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if got := found.Namespaces[0].Tightest; got.Quota != "crq/team" || got.Resource != "requests.cpu" || got.Percent != 87 {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff([]string{"You may not read jobs: what depends on that isn't looked for."}, found.Notes); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
}
