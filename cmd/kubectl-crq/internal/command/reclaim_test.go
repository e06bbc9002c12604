// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

func before(ago time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-ago)) }

// limited has a quota on all that findings hold.
func limited(objects func(*reading.Inventory)) *reading.Inventory {
	hard := amounts("requests.cpu", "4", "pods", "40", "count/pods", "80", "count/jobs.batch", "9", "services.loadbalancers", "9",
		"requests.storage", "90Gi")
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

func looping(pod corev1.Pod, restarts int32, run time.Duration) corev1.Pod {
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", RestartCount: restarts, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: crashLoop}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			StartedAt: before(run + time.Minute), FinishedAt: before(time.Minute),
		}},
	}}
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
	service.CreationTimestamp = before(2 * time.Hour)
	return service
}

func endpoints(service string, ready *bool) discoveryv1.EndpointSlice {
	return discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		Endpoints:  []discoveryv1.Endpoint{{Conditions: discoveryv1.EndpointConditions{Ready: ready}}},
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

func TestReclaim(t *testing.T) {
	young := oldPod("young", corev1.PodPending)
	young.CreationTimestamp = before(time.Minute)
	for name, test := range map[string]struct {
		objects func(*reading.Inventory)
		want    []string
	}{
		"a bare pod has been pending for long, another one not": {
			func(i *reading.Inventory) { i.Pods = []corev1.Pod{oldPod("alone", corev1.PodPending), young} },
			[]string{"Pod/alone: pending for 120m. [crq/team count/pods: 1, pods: 1, requests.cpu: 100m] kubectl delete pod/alone -n shop"},
		},
		"pods of a Deployment do nothing, and one works": {
			func(i *reading.Inventory) {
				i.Deployments = []appsv1.Deployment{rolling("NewReplicaSetAvailable", time.Hour)}
				i.ReplicaSets = []appsv1.ReplicaSet{replicaSet("web-1", 3, "1")}
				i.Pods = []corev1.Pod{
					oldPod("a", corev1.PodPending, "ReplicaSet", "web-1"), looping(oldPod("b", "", "ReplicaSet", "web-1"), 30, time.Second),
					oldPod("c", corev1.PodRunning, "ReplicaSet", "web-1"),
				}
			},
			[]string{"Deployment/web: 1 pod crash-looping, 1 pod pending, for up to 120m: container app restarted 30 times. " +
				"[crq/team count/pods: 2, pods: 2, requests.cpu: 200m] kubectl scale deployment/web --replicas=1 -n shop"},
		},
		"a pod that restarts seldom doesn't loop": {
			func(i *reading.Inventory) {
				i.Pods = []corev1.Pod{looping(oldPod("steady", ""), 300, time.Hour), looping(oldPod("recent", ""), 5, time.Second)}
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
		"a rollout is stuck, and is told once": {
			func(i *reading.Inventory) {
				i.Deployments = []appsv1.Deployment{rolling("ProgressDeadlineExceeded", time.Minute)}
				i.ReplicaSets = []appsv1.ReplicaSet{replicaSet("web-1", 1, "1"), replicaSet("web-2", 2, "12")}
				i.Pods = []corev1.Pod{oldPod("a", corev1.PodRunning, "ReplicaSet", "web-1"), oldPod("b", corev1.PodPending, "ReplicaSet", "web-2")}
			},
			[]string{"Deployment/web: 2 of its ReplicaSets have pods, and it has made no progress for 60s; 1 pod of them does nothing. " +
				"[crq/team count/pods: 1, pods: 1, requests.cpu: 100m] kubectl rollout undo deployment/web -n shop (it goes back to the template before.)"},
		},
		"a rollout goes on": {
			func(i *reading.Inventory) {
				i.Deployments = []appsv1.Deployment{rolling("ReplicaSetUpdated", time.Minute)}
				i.ReplicaSets = []appsv1.ReplicaSet{replicaSet("web-1", 1, "1"), replicaSet("web-2", 2, "12")}
				i.Pods = []corev1.Pod{oldPod("a", corev1.PodRunning, "ReplicaSet", "web-1")}
			},
			nil,
		},
		"a rollout is paused with a pod more": {
			func(i *reading.Inventory) {
				paused := rolling("DeploymentPaused", time.Hour)
				paused.Spec.Paused = true
				i.Deployments = []appsv1.Deployment{paused}
				i.ReplicaSets = []appsv1.ReplicaSet{replicaSet("web-1", 2, "1"), replicaSet("web-2", 1, "2")}
				for _, name := range []string{"a", "b"} {
					i.Pods = append(i.Pods, oldPod(name, corev1.PodRunning, "ReplicaSet", "web-1"))
				}
				i.Pods = append(i.Pods, oldPod("c", corev1.PodRunning, "ReplicaSet", "web-2"))
			},
			[]string{"Deployment/web: 2 of its ReplicaSets have pods, and it has been paused in the middle of a rollout for 60m; 1 pod of them does nothing. " +
				"[crq/team count/pods: 1, pods: 1, requests.cpu: 100m] kubectl rollout resume deployment/web -n shop (it goes on to the newest template.)"},
		},
		"a finished Job counts with its pods, which use no CPU any more": {
			func(i *reading.Inventory) {
				i.Jobs = []batchv1.Job{finished(batchv1.JobComplete, 2*time.Hour)}
				i.Pods = []corev1.Pod{oldPod("import-a", corev1.PodSucceeded, "Job", "import")}
			},
			[]string{"Job/import: completed 120m ago, and still counts. [crq/team count/jobs.batch: 1, count/pods: 1] kubectl delete job/import -n shop " +
				"(the logs of its pods are lost.)"},
		},
		"a Job has just failed": {
			func(i *reading.Inventory) { i.Jobs = []batchv1.Job{finished(batchv1.JobFailed, time.Minute)} }, nil,
		},
		"load balancers without endpoints": {
			func(i *reading.Inventory) {
				i.Services = []corev1.Service{balancer("none"), balancer("broken"), balancer("ready"), balancer("unsaid"), *builders.Service("shop", "plain").Obj()}
				i.Slices = []discoveryv1.EndpointSlice{endpoints("broken", ptr.To(false)), endpoints("ready", ptr.To(true)), endpoints("unsaid", nil)}
			},
			[]string{
				"Service/broken: no endpoint behind the load balancer is ready. It was created 120m ago. [crq/team services.loadbalancers: 1] " +
					"kubectl delete service/broken -n shop (its address is lost.)",
				"Service/none: no endpoint behind the load balancer is ready. It was created 120m ago. [crq/team services.loadbalancers: 1] " +
					"kubectl delete service/none -n shop (its address is lost.)",
			},
		},
		"claims that no pod uses": {
			func(i *reading.Inventory) {
				i.StatefulSets = []appsv1.StatefulSet{database(1)}
				nightly, idle := builders.CronJob("shop", "nightly"), builders.Deployment("shop", "idle", 0)
				mounting(&nightly.Spec.JobTemplate.Spec.Template.Spec, "nightly")
				mounting(&idle.Spec.Template.Spec, "idle")
				nightly.Spec.Suspend = nil
				i.CronJobs, i.Deployments = []batchv1.CronJob{*nightly}, []appsv1.Deployment{*idle}
				used := oldPod("used", corev1.PodRunning)
				mounting(&used.Spec, "used")
				ofPod := oldClaim("of-pod")
				ofPod.OwnerReferences = controlledBy("Pod", "used", "used")
				i.Pods = []corev1.Pod{used}
				i.Claims = []corev1.PersistentVolumeClaim{
					oldClaim("data-db-0"), oldClaim("data-db-3"), oldClaim("nightly"), oldClaim("idle"), oldClaim("used"), oldClaim("lost"), ofPod,
				}
			},
			[]string{
				"PersistentVolumeClaim/data-db-3: no pod uses it. It was created 120m ago, and is kept by StatefulSet db, ordinal 3. [crq/team requests.storage: 1Gi] " +
					"kubectl delete persistentvolumeclaim/data-db-3 -n shop (its data is lost, unless the volume's reclaim policy is Retain.)",
				"PersistentVolumeClaim/idle: no pod uses it. It was created 120m ago, and is kept by Deployment idle. [crq/team requests.storage: 1Gi] " +
					"kubectl delete persistentvolumeclaim/idle -n shop (its data is lost, unless the volume's reclaim policy is Retain.)",
				"PersistentVolumeClaim/lost: no pod uses it. It was created 120m ago. [crq/team requests.storage: 1Gi] " +
					"kubectl delete persistentvolumeclaim/lost -n shop (its data is lost, unless the volume's reclaim policy is Retain.)",
			},
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
				"Service/a: no endpoint behind the load balancer is ready. It was created 120m ago. [crq/team services.loadbalancers: 1] " +
					"kubectl delete service/a -n shop (its address is lost.)",
			},
		},
		"a right is missing": {
			func(i *reading.Inventory) {
				i.Forbidden = []string{"endpointslices"}
				i.Services = []corev1.Service{balancer("a")}
			},
			nil,
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
	} {
		t.Run(name, func(t *testing.T) {
			found, err := findIdle(limited(test.objects), newMeter(clocktesting.NewFakeClock(noon)), time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, namespace := range found.Namespaces {
				for _, finding := range namespace.Findings {
					text := finding.String() + ": " + finding.Message
					for _, freed := range finding.Frees {
						text += fmt.Sprintf(" [%s %s]", freed.Quota, joined(amountsOf(freed.Amounts)))
					}
					text += " " + finding.Command
					if finding.Caution != "" {
						text += " (" + finding.Caution + ")"
					}
					got = append(got, text)
				}
			}
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func joined(texts []string) string {
	text := ""
	for i, one := range texts {
		if i > 0 {
			text += ", "
		}
		text += one
	}
	return text
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

func TestTheCommandOfEachWorkload(t *testing.T) {
	for kind, want := range map[string]string{
		"ReplicaSet": "kubectl scale replicaset/x --replicas=0 -n shop", "DaemonSet": "kubectl delete daemonset/x -n shop",
		"Job": "kubectl delete Job.v1.apps x -n shop", "Rollout": "kubectl delete Rollout.v1.apps x -n shop",
	} {
		t.Run(kind, func(t *testing.T) {
			found, err := findIdle(limited(func(i *reading.Inventory) {
				i.Pods = []corev1.Pod{oldPod("x-1", corev1.PodPending, kind, "x")}
			}), newMeter(clocktesting.NewFakeClock(noon)), time.Hour)
			if err != nil || found.Namespaces[0].Findings[0].Command != want {
				t.Errorf("got %+v, %v", found, err)
			}
		})
	}
}
