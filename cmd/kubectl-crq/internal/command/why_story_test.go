// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i+1 < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// view is of a quota of which used is used of hard, this namespace's share being here.
func view(name string, hard, used, here corev1.ResourceList) quotav1.LocalResourceQuota {
	made := quotav1.LocalResourceQuota{ObjectMeta: builders.Meta("shop", name)}
	made.Status.Total = corev1.ResourceQuotaStatus{Hard: hard, Used: used}
	made.Status.Used = here
	return made
}

func native(name string, hard, used corev1.ResourceList) corev1.ResourceQuota {
	made := *builders.ResourceQuota("shop", name)
	made.Spec.Hard = hard
	made.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: used}
	return made
}

func refusedEvent(kind, name, message string, secondsAgo int) corev1.Event {
	last := metav1.NewTime(noon.Add(-time.Duration(secondsAgo) * time.Second))
	return corev1.Event{
		InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name}, Reason: "FailedCreate", Message: message, Count: 3,
		FirstTimestamp: metav1.NewTime(last.Add(-time.Minute)), LastTimestamp: last,
	}
}

func subjectOf(t *testing.T, text string) reading.Subject {
	t.Helper()
	parsed, err := reading.ParseSubject([]string{text})
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// scene is a Deployment of four pods of 250m each, one of which is there, and its ReplicaSet.
type scene struct {
	deployment *appsv1.Deployment
	set        *appsv1.ReplicaSet
	// served: the ReplicaSet's controller has succeeded since.
	served bool
	*reading.Situation
}

func newScene(t *testing.T) *scene {
	t.Helper()
	deployment := builders.Deployment("shop", "web", 4)
	deployment.UID = "web"
	deployment.Spec.Template.Spec.Containers[0].Resources.Requests = amounts("cpu", "250m")
	deployment.Status.Replicas, deployment.Status.UpdatedReplicas = 1, 1
	set := builders.ReplicaSet("shop", "web-1")
	set.UID, set.Spec.Replicas, set.Spec.Template = "web-1", ptr.To[int32](4), *deployment.Spec.Template.DeepCopy()
	set.OwnerReferences = controlledBy("Deployment", "web", "web")
	pod := builders.Pod("shop", "web-1-a").Request("cpu", "250m").Obj()
	pod.OwnerReferences = controlledBy("ReplicaSet", "web-1", "web-1")
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	kind := func(name string) reading.Kind { return subjectOf(t, name+"/any").Kind }
	return &scene{deployment: deployment, set: set, Situation: &reading.Situation{
		Subject: subjectOf(t, "deployment/web"), Namespace: "shop",
		Chain: []reading.Link{{Kind: kind("deployment"), Object: deployment}, {Kind: kind("replicaset"), Object: set}},
		Pods:  []corev1.Pod{*pod},
	}}
}

func controlledBy(kind, name, uid string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID(uid), Controller: ptr.To(true)}}
}

// failReplicaSet has the ReplicaSet say what its controller was refused last, as it does until it succeeds.
func (s *scene) failReplicaSet() {
	for _, event := range s.Events {
		if s.set != nil && !s.served && event.InvolvedObject.Name == s.set.Name {
			s.set.Status.Conditions = []appsv1.ReplicaSetCondition{{
				Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Message: event.Message, LastTransitionTime: event.FirstTimestamp,
			}}
			return
		}
	}
}

// diagnosed fills in what the reader would have.
func (s *scene) diagnosed(t *testing.T, older ...*appsv1.ReplicaSet) (*render.Why, error) {
	t.Helper()
	s.failReplicaSet()
	s.Present.Pods, s.Present.ReplicaSets = nil, nil
	for i := range s.Pods {
		s.Present.Pods = append(s.Present.Pods, &s.Pods[i])
	}
	if s.set != nil {
		s.Present.ReplicaSets = append([]*appsv1.ReplicaSet{s.set}, older...)
	}
	return diagnose(s.Situation, fitting.NewTypes(), newMeter(clocktesting.NewFakeClock(noon)))
}

const (
	byTeam = `Error creating: admission webhook "x" denied the request: exceeded quota: team, requested: requests.cpu=250m, used: requests.cpu=900m, limited: requests.cpu=1`
	byOwn  = `Error creating: pods "web-1-x" is forbidden: exceeded quota: own, requested: pods=1, used: pods=1, limited: pods=1`
)
