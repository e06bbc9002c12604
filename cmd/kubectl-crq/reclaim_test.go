// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

func before(ago time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-ago)) }

// limited has a quota on all that findings hold.
func limited(objects func(*reading.Inventory)) *reading.Inventory {
	hard := amounts("requests.cpu", "4", "pods", "40", "count/pods", "80", "count/jobs.batch", "9", "services.loadbalancers", "9",
		"requests.storage", "90Gi", "count/replicasets.apps", "9")
	used := amounts("requests.cpu", "3500m", "pods", "4", "count/pods", "4", "count/jobs.batch", "1", "services.loadbalancers", "1",
		"requests.storage", "1Gi")
	inventory := &reading.Inventory{Limits: reading.Limits{Views: []quotav1.LocalResourceQuota{view("team", hard, used, nil)}}}
	objects(inventory)
	return inventory
}

func oldPod(name string, phase corev1.PodPhase, controller ...string) corev1.Pod {
	pod := builders.Pod("shop", name).Request("cpu", "100m").Obj()
	pod.UID, pod.CreationTimestamp, pod.Status.Phase = types.UID(name), before(2*time.Hour), phase
	if len(controller) > 0 {
		pod.OwnerReferences = controlledBy(controller[0], controller[1], controller[1])
	}
	return *pod
}

func restarting(pod corev1.Pod, restarts int32, run time.Duration) corev1.Pod {
	pod.Status.Phase, pod.Status.Conditions = corev1.PodRunning, readySince(corev1.ConditionFalse, 90*time.Minute)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", RestartCount: restarts, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: crashLoop}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			StartedAt: before(run + time.Minute), FinishedAt: before(time.Minute),
		}},
	}}
	return pod
}

// readySince is the condition Ready, which has changed so long ago.
func readySince(status corev1.ConditionStatus, ago time.Duration) []corev1.PodCondition {
	return []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: before(ago)}}
}

func ready(pod corev1.Pod) corev1.Pod {
	pod.Status.Phase, pod.Status.Conditions = corev1.PodRunning, readySince(corev1.ConditionTrue, time.Hour)
	return pod
}

func replicaSet(name string, replicas int32, revision string) appsv1.ReplicaSet {
	set := *builders.ReplicaSet("shop", name)
	set.UID, set.Spec.Replicas = types.UID(name), ptr.To(replicas)
	set.Annotations = map[string]string{"deployment.kubernetes.io/revision": revision}
	set.OwnerReferences = controlledBy("Deployment", "web", "web")
	return set
}

func rolling(reason string, updated time.Duration) appsv1.Deployment {
	deployment := *builders.Deployment("shop", "web", 2)
	deployment.UID = "web"
	deployment.Status.Conditions = []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentProgressing, Reason: reason, LastUpdateTime: before(updated)},
	}
	return deployment
}

func finished(condition batchv1.JobConditionType, ago time.Duration) batchv1.Job {
	job := *builders.Job("shop", "import")
	job.UID = "import"
	job.Status.Conditions = []batchv1.JobCondition{{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: before(ago)}}
	return job
}

func balancer(name string) corev1.Service {
	service := *builders.Service("shop", name).Type(corev1.ServiceTypeLoadBalancer, 80).Obj()
	service.CreationTimestamp, service.Spec.Selector = before(300*24*time.Hour), map[string]string{"app": name}
	return service
}

func endpoints(service string, ready *bool) discoveryv1.EndpointSlice {
	return discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: service, CreationTimestamp: before(3 * time.Hour), Labels: map[string]string{discoveryv1.LabelServiceName: service},
		},
		Endpoints: []discoveryv1.Endpoint{{Conditions: discoveryv1.EndpointConditions{Ready: ready}}},
	}
}

func oldClaim(name string) corev1.PersistentVolumeClaim {
	claim := *builders.VolumeClaim("shop", name).Size("1Gi").Obj()
	claim.CreationTimestamp = before(2 * time.Hour)
	return claim
}

func mounting(spec *corev1.PodSpec, claim string) {
	spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}}}
}

func database(replicas int32) appsv1.StatefulSet {
	set := *builders.StatefulSet("shop", "db")
	set.UID, set.Spec.Replicas = "db", ptr.To(replicas)
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	return set
}

// story is the content of a namespace, and the findings in it.
type story struct {
	objects func(*reading.Inventory)
	want    []string
}

// wantFindings compares the texts of findings with those of each story.
func wantFindings(t *testing.T, stories map[string]story) {
	t.Helper()
	for name, test := range stories {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, findingsOf(t, test.objects), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func findingsOf(t *testing.T, objects func(*reading.Inventory)) []string {
	t.Helper()
	found, err := findIdle(limited(objects), newMeter(clocktesting.NewFakeClock(noon), fitting.Surroundings{}), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, namespace := range found.Namespaces {
		for i := range namespace.Findings {
			texts = append(texts, findingText(&namespace.Findings[i]))
		}
	}
	return texts
}

// findingText is as in "Pod/a: pending. [crq/team pods: 1] kubectl delete pod/a (a caution)".
func findingText(of *render.Finding) string {
	text := of.String() + ": " + of.Message
	for _, freed := range of.Frees {
		text += fmt.Sprintf(" [%s %s]", freed.Quota, strings.Join(amountsOf(freed.Amounts), ", "))
	}
	if of.Command != "" {
		text += " " + of.Command
	}
	if of.Caution != "" {
		text += " (" + of.Caution + ")"
	}
	return text
}

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
		"a pod was ready a minute ago, for any number of restarts in a year": {
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
				"kubectl scale statefulset/db --replicas=1 -n shop (it also ends 1 pod of a higher number: not idle, and maybe serving.)"},
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

func TestReclaimOfPodsThatHaveEnded(t *testing.T) {
	const lost = " (its logs are lost.)"
	ended := func(name string, phase corev1.PodPhase, owner ...string) corev1.Pod {
		pod := oldPod(name, phase, owner...)
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{FinishedAt: before(90 * time.Minute)},
		}}}
		return pod
	}
	wantFindings(t, map[string]story{
		"no controller made them": {
			func(i *reading.Inventory) {
				i.Pods = []corev1.Pod{ended("a", corev1.PodSucceeded), ended("b", corev1.PodFailed)}
			},
			[]string{
				"Pod/a: succeeded 90m ago, and still counts. [crq/team count/pods: 1] kubectl delete pod/a -n shop" + lost,
				"Pod/b: failed 90m ago, and still counts. [crq/team count/pods: 1] kubectl delete pod/b -n shop" + lost,
			},
		},
		"a ReplicaSet has replaced them": {
			func(i *reading.Inventory) {
				i.ReplicaSets = []appsv1.ReplicaSet{replicaSet("web-1", 1, "1")}
				i.Pods = []corev1.Pod{ended("a", corev1.PodFailed, "ReplicaSet", "web-1"), ended("b", corev1.PodFailed, "ReplicaSet", "web-1")}
				i.Deployments = []appsv1.Deployment{rolling("NewReplicaSetAvailable", time.Hour)}
			},
			[]string{"Deployment/web: 2 pods failed, up to 90m ago, and still count. [crq/team count/pods: 2] kubectl delete pod/a pod/b -n shop" + lost},
		},
		"a workflow made them": {
			func(i *reading.Inventory) { i.Pods = []corev1.Pod{ended("a", corev1.PodSucceeded, "Workflow", "etl")} },
			[]string{"Workflow/etl: 1 pod succeeded, up to 90m ago, and still count. [crq/team count/pods: 1] " +
				"(this command doesn't know how to make Workflow/etl smaller. Ask those who run it.)"},
		},
		"a Job that goes on made them": {
			func(i *reading.Inventory) {
				i.Jobs, i.Pods = []batchv1.Job{finished("Suspended", 0)}, []corev1.Pod{ended("a", corev1.PodSucceeded, "Job", "import")}
			}, nil,
		},
	})
}

func TestReclaimOfReplicaSetsServicesAndUnboundClaims(t *testing.T) {
	set := func(name string, replicas int32, revision string) appsv1.ReplicaSet {
		made := replicaSet(name, replicas, revision)
		made.CreationTimestamp = before(3 * time.Hour)
		return made
	}
	wantFindings(t, map[string]story{
		"ReplicaSets of older templates, but not the current one, which may be scaled to nothing": {
			func(i *reading.Inventory) {
				bare := set("bare", 0, "")
				bare.OwnerReferences = nil
				i.ReplicaSets = []appsv1.ReplicaSet{set("web-1", 0, "1"), set("web-2", 0, "2"), bare}
			},
			[]string{
				"ReplicaSet/bare: it has no pods and wants none. It was created 3h ago. [crq/team count/replicasets.apps: 1] kubectl delete replicaset/bare -n shop",
				"ReplicaSet/web-1: it has no pods and wants none. It was created 3h ago. [crq/team count/replicasets.apps: 1] " +
					"kubectl delete replicaset/web-1 -n shop (Deployment/web can't go back to revision 1 then.)",
			},
		},
		"a Service that is no load balancer": {
			func(i *reading.Inventory) {
				i.Limits.Views[0].Status.Total.Hard["services.nodeports"] = resource.MustParse("3")
				service := balancer("web")
				service.Spec.Type = corev1.ServiceTypeNodePort
				i.Services = []corev1.Service{service}
			},
			[]string{"Service/web: no endpoint behind it is ready; since when isn't known. It was created 300d ago. [crq/team services.nodeports: 1] " +
				"kubectl delete service/web -n shop (nothing can reach it by its name or address any more.)"},
		},
		"a claim that a pod waits for": {
			func(i *reading.Inventory) {
				pod := oldPod("db", corev1.PodPending)
				pod.CreationTimestamp = before(time.Minute)
				mounting(&pod.Spec, "data")
				i.Claims, i.Pods = []corev1.PersistentVolumeClaim{oldClaim("data")}, []corev1.Pod{pod}
				i.Claims[0].Status.Phase = corev1.ClaimPending
			},
			[]string{"PersistentVolumeClaim/data: it hasn't been bound since it was created 120m ago. [crq/team requests.storage: 1Gi] " +
				"(a pod mounts it and waits. Look at why it isn't bound: kubectl describe persistentvolumeclaim/data -n shop.)"},
		},
	})
}

func TestReclaimSaysWhatItLookedFor(t *testing.T) {
	inventory := limited(func(i *reading.Inventory) {
		i.Limits.Views[0].Status.Total.Hard["count/configmaps"] = resource.MustParse("3")
	})
	inventory.Forbidden = []string{"services"}
	got := strings.Join(lookedFor(inventory), "; ")
	for _, want := range []string{"have ended", "finished Jobs", "older templates", "aren't bound", "not for what uses count/configmaps"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q isn't in %q", want, got)
		}
	}
	if strings.Contains(got, "Services") {
		t.Errorf("what may not be read is said to be looked for: %q", got)
	}
	for name, want := range map[corev1.ResourceName]bool{"pods": true, "requests.cpu": true, "count/pods": true, "count/configmaps": false, "secrets": false} {
		if isFindable(name) != want {
			t.Errorf("%s: want %v", name, want)
		}
	}
}

func TestReclaimNamesTheTightestResource(t *testing.T) {
	found, err := findIdle(limited(func(i *reading.Inventory) {
		i.Pods, i.Forbidden = []corev1.Pod{oldPod("alone", corev1.PodPending)}, []string{"jobs"}
	}), newMeter(clocktesting.NewFakeClock(noon), fitting.Surroundings{}), time.Hour)
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

// amountsOf returns the amounts as texts, sorted.
func amountsOf(amounts corev1.ResourceList) []string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		amount := amounts[name]
		texts = append(texts, string(name)+": "+amount.String())
	}
	return texts
}
