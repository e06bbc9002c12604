// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

func TestReclaimOfJobs(t *testing.T) {
	wantFindings(t, map[string]story{
		"a finished Job counts with its pods, which use no CPU any more": {
			func(i *reading.Inventory) {
				i.Jobs = []batchv1.Job{finished(batchv1.JobComplete, 2*time.Hour)}
				i.Pods = []corev1.Pod{oldPod("import-a", corev1.PodSucceeded, "Job", "import")}
			},
			[]string{"Job/import: completed 120m ago, and still counts. [crq/team count/jobs.batch: 1, count/pods: 1] kubectl delete job/import -n shop " +
				"(the logs of its pods are lost.)"},
		},
		"a Job has just failed": {func(i *reading.Inventory) { i.Jobs = []batchv1.Job{finished(batchv1.JobFailed, time.Minute)} }, nil},
	})
}

func TestReclaimOfLoadBalancers(t *testing.T) {
	const lost = "[crq/team services.loadbalancers: 1] kubectl delete service/web -n shop (its address is lost.)"
	since := func(ago string) []string {
		return []string{"Service/web: no endpoint behind the load balancer has been ready for at least " + ago + ". " + lost}
	}
	// behind has a load balancer, and one pod behind it, which is as ready as the conditions say.
	behind := func(i *reading.Inventory, conditions []corev1.PodCondition) {
		pod := oldPod("web-1", corev1.PodRunning)
		pod.Labels, pod.Status.Conditions = map[string]string{"app": "web"}, conditions
		i.Services, i.Slices = []corev1.Service{balancer("web")}, []discoveryv1.EndpointSlice{endpoints("web", ptr.To(false))}
		i.Pods = []corev1.Pod{pod}
	}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web", "tier": "front"}}}
	wantFindings(t, map[string]story{
		"nothing says since when": {
			func(i *reading.Inventory) { i.Services = []corev1.Service{balancer("web")} },
			[]string{"Service/web: no endpoint behind the load balancer is ready; since when isn't known. It was created 300d ago. " + lost},
		},
		"its pod hasn't been ready for long": {func(i *reading.Inventory) { behind(i, readySince(corev1.ConditionFalse, 90*time.Minute)) }, since("90m")},
		"its pod was ready a minute ago":     {func(i *reading.Inventory) { behind(i, readySince(corev1.ConditionFalse, time.Minute)) }, nil},
		"its pod was restarted five seconds ago": {
			func(i *reading.Inventory) { behind(i, nil); i.Pods[0].CreationTimestamp = before(5 * time.Second) },
			nil,
		},
		"its endpoints were triggered to change a minute ago": {
			func(i *reading.Inventory) {
				behind(i, readySince(corev1.ConditionFalse, 90*time.Minute))
				i.Slices[0].Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: before(time.Minute).Format(time.RFC3339Nano)}
			},
			nil,
		},
		"its last pod went a minute ago": {
			func(i *reading.Inventory) {
				behind(i, nil)
				i.Pods, i.Slices[0].Endpoints = nil, nil
				i.Slices[0].ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", Time: ptr.To(before(time.Minute))}}
			},
			nil,
		},
		"its last pod went long ago": {
			func(i *reading.Inventory) {
				behind(i, nil)
				i.Pods, i.Slices[0].Endpoints = nil, nil
				i.Slices[0].ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", Time: ptr.To(before(2 * time.Hour))}}
			},
			since("120m"),
		},
		"a Deployment is about to stand behind it": {
			func(i *reading.Inventory) {
				behind(i, readySince(corev1.ConditionFalse, 90*time.Minute))
				i.Deployments = []appsv1.Deployment{*builders.Deployment("shop", "web", 1)}
				i.Deployments[0].Spec.Template = template
			},
			nil,
		},
		"a ReplicaSet of a foreign controller is about to serve behind it": {
			func(i *reading.Inventory) {
				behind(i, readySince(corev1.ConditionFalse, 90*time.Minute))
				i.ReplicaSets = []appsv1.ReplicaSet{{ObjectMeta: builders.Meta("shop", "web"), Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](1), Template: template}}}
			},
			nil,
		},
		"a Deployment that is scaled to nothing stands behind it": {
			func(i *reading.Inventory) {
				behind(i, readySince(corev1.ConditionFalse, 90*time.Minute))
				i.Deployments = []appsv1.Deployment{*builders.Deployment("shop", "web", 0)}
				i.Deployments[0].Spec.Template = template
			},
			since("90m"),
		},
		"it has no selector, so a foreign controller writes its endpoints": {
			func(i *reading.Inventory) {
				behind(i, readySince(corev1.ConditionFalse, 90*time.Minute))
				i.Services[0].Spec.Selector = nil
			},
			nil,
		},
		"an endpoint is ready, or doesn't say, or it is no load balancer": {
			func(i *reading.Inventory) {
				i.Services = []corev1.Service{balancer("ready"), balancer("unsaid"), *builders.Service("shop", "plain").Obj()}
				i.Slices = []discoveryv1.EndpointSlice{endpoints("ready", ptr.To(true)), endpoints("unsaid", nil)}
			},
			nil,
		},
		"a right is missing": {
			func(i *reading.Inventory) {
				i.Forbidden = []string{"endpointslices"}
				i.Services = []corev1.Service{balancer("web")}
			},
			nil,
		},
	})
}

func TestReclaimOfClaims(t *testing.T) {
	ended := func(ago string) string {
		return "Pod/user: failed " + ago + " ago, and still counts. [crq/team count/pods: 1] kubectl delete pod/user -n shop (its logs are lost.)"
	}
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
			}, append([]string{ended("90m")}, unused...),
		},
		"a pod mounted it, and doesn't say until when": {
			func(i *reading.Inventory) { i.Pods = []corev1.Pod{pod(corev1.PodFailed, nil)} }, []string{ended("120m")},
		},
		"a pod owns it": {func(i *reading.Inventory) { i.Claims[0].OwnerReferences = controlledBy("Pod", "used", "used") }, nil},
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
		stories[name] = story{func(i *reading.Inventory) { i.Claims = []corev1.PersistentVolumeClaim{oldClaim("c")}; objects(i) }, one.want}
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

func TestReclaimOfRollouts(t *testing.T) {
	stuck := func(since, command string) []string {
		return []string{"Deployment/web: 2 of its ReplicaSets have pods, and it has made no progress for " + since + "; idle: 1 pod. " +
			"[crq/team count/pods: 1, pods: 1, requests.cpu: 100m] " + command}
	}
	const back = "kubectl rollout undo deployment/web --to-revision=1 -n shop (it goes back to the template of revision 1, of which most pods are ready.)"
	// between has a ready pod of revision 1, and one of revision 12 that is pending.
	between := func(i *reading.Inventory) {
		i.ReplicaSets = []appsv1.ReplicaSet{replicaSet("web-1", 1, "1"), replicaSet("web-2", 2, "12")}
		i.Pods = []corev1.Pod{ready(oldPod("a", "", "ReplicaSet", "web-1")), oldPod("b", corev1.PodPending, "ReplicaSet", "web-2")}
	}
	withDeadline := func(seconds int32, conditions []appsv1.DeploymentCondition) appsv1.Deployment {
		deployment := rolling("", 0)
		deployment.CreationTimestamp = before(300 * 24 * time.Hour)
		deployment.Spec.ProgressDeadlineSeconds, deployment.Status.Conditions = ptr.To(seconds), conditions
		return deployment
	}
	wantFindings(t, map[string]story{
		"its deadline is over, and it is told once": {
			func(i *reading.Inventory) {
				between(i)
				i.Deployments = []appsv1.Deployment{rolling("ProgressDeadlineExceeded", time.Minute)}
			},
			stuck("60s", back),
		},
		"it goes on": {
			func(i *reading.Inventory) {
				between(i)
				i.Deployments, i.Pods = []appsv1.Deployment{rolling("ReplicaSetUpdated", time.Minute)}, i.Pods[:1]
			},
			nil,
		},
		"it has made no progress for longer than ten minutes": {
			func(i *reading.Inventory) {
				between(i)
				i.Deployments = []appsv1.Deployment{withDeadline(600, rolling("ReplicaSetUpdated", 11*time.Minute).Status.Conditions)}
				i.Pods[1].CreationTimestamp = before(11 * time.Minute)
			},
			stuck("11m", back),
		},
		"its owner lets it take longer": {
			func(i *reading.Inventory) {
				between(i)
				i.Deployments = []appsv1.Deployment{withDeadline(1200, rolling("ReplicaSetUpdated", 11*time.Minute).Status.Conditions)}
				i.Pods[1].CreationTimestamp = before(11 * time.Minute)
			},
			nil,
		},
		"it has no deadline, and has begun three seconds ago": {
			func(i *reading.Inventory) {
				between(i)
				i.Deployments = []appsv1.Deployment{withDeadline(math.MaxInt32, nil)}
				i.ReplicaSets[1].CreationTimestamp, i.Pods[1].CreationTimestamp = before(3*time.Second), before(2*time.Second)
			},
			nil,
		},
		"it has no deadline, and has begun three hours ago": {
			func(i *reading.Inventory) {
				between(i)
				i.Deployments = []appsv1.Deployment{withDeadline(math.MaxInt32, nil)}
				i.ReplicaSets[1].CreationTimestamp = before(3 * time.Hour)
			},
			stuck("120m", back),
		},
		"it goes back to the revision whose pods are ready, not to the one before": {
			func(i *reading.Inventory) {
				i.Deployments = []appsv1.Deployment{rolling("ProgressDeadlineExceeded", time.Hour)}
				i.ReplicaSets = []appsv1.ReplicaSet{replicaSet("web-2", 2, "2"), replicaSet("web-3", 0, "3"), replicaSet("web-4", 1, "4")}
				i.Pods = []corev1.Pod{ready(oldPod("a", "", "ReplicaSet", "web-2")), oldPod("b", corev1.PodPending, "ReplicaSet", "web-4")}
			},
			stuck("60m", "kubectl rollout undo deployment/web --to-revision=2 -n shop (it goes back to the template of revision 2, of which most pods are ready.)"),
		},
		"no older revision has a ready pod": {
			func(i *reading.Inventory) {
				between(i)
				i.Deployments = []appsv1.Deployment{rolling("ProgressDeadlineExceeded", time.Hour)}
				i.Pods[0] = oldPod("a", corev1.PodRunning, "ReplicaSet", "web-1")
			},
			stuck("60m", "(no older ReplicaSet of it has a ready pod that it could go back to. Look at why the pods of each aren't ready.)"),
		},
		"another controller looks after it": {
			func(i *reading.Inventory) {
				between(i)
				i.Deployments = []appsv1.Deployment{rolling("ProgressDeadlineExceeded", time.Hour)}
				i.Deployments[0].OwnerReferences = above("Gateway")
			},
			stuck("60m", "(Gateway/above controls it, and may need it or make it again. Ask those who run Gateway/above.)"),
		},
		"it is paused with a pod more": {
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
			[]string{"Deployment/web: 2 of its ReplicaSets have pods, and it has been paused in the middle of a rollout for 60m; idle: 1 pod. " +
				"[crq/team count/pods: 1, pods: 1, requests.cpu: 100m] kubectl rollout resume deployment/web -n shop (it goes on to the newest template.)"},
		},
	})
}
