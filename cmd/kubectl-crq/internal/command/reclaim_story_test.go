// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"strings"
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
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
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

// story is what a namespace holds, and what is found in it.
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
	found, err := findIdle(limited(objects), newMeter(clocktesting.NewFakeClock(noon)), time.Hour)
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
