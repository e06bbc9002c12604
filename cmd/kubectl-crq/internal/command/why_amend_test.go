// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// olderPods replaces the pods by four of an older ReplicaSet, each with this much CPU.
func (s *scene) olderPods(cpu string, strategy *appsv1.RollingUpdateDeployment) *appsv1.ReplicaSet {
	older := replicaSet("web-0", 4, "1")
	older.Spec.Template = *s.deployment.Spec.Template.DeepCopy()
	older.Spec.Template.Spec.Containers[0].Image = "older"
	s.deployment.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: strategy}
	s.Pods = nil
	for _, name := range []string{"a", "b", "c", "d"} {
		pod := builders.Pod("shop", name).Request("cpu", cpu).Obj()
		pod.OwnerReferences = controlledBy("ReplicaSet", "web-0", "web-0")
		s.Pods = append(s.Pods, *pod)
	}
	return &older
}

func TestWhyOfARollout(t *testing.T) {
	steps := func(surge, unavailable int32) *appsv1.RollingUpdateDeployment {
		return &appsv1.RollingUpdateDeployment{MaxSurge: ptr.To(intstr.FromInt32(surge)), MaxUnavailable: ptr.To(intstr.FromInt32(unavailable))}
	}
	full := func() quotav1.LocalResourceQuota {
		return view("team", amounts("pods", "4"), amounts("pods", "4"), nil)
	}
	const refusesAPod = "Error creating: exceeded quota: team, requested: pods=1, used: pods=4, limited: pods=4"
	const refusesCPU = "Error creating: exceeded quota: team, requested: requests.cpu=350m, used: requests.cpu=1900m, limited: requests.cpu=2"
	for name, test := range map[string]struct {
		cpu     string
		steps   *appsv1.RollingUpdateDeployment
		view    quotav1.LocalResourceQuota
		message string
		cause   render.Cause
		summary string
	}{
		"one pod more than wanted is refused": {
			"250m", steps(1, 0), full(), refusesAPod, render.QuotaShort, "Deployment/web lacks 4 pods of the new template: crq/team is short of pods: 1.",
		},
		"the pod that follows an old one is refused": {
			"250m", steps(0, 1), full(), refusesAPod, render.QuotaShort, "Deployment/web lacks 4 pods of the new template: crq/team is short of pods: 1.",
		},
		"one pod is larger than its template, and fits now": {
			"350m", steps(1, 0), view("team", amounts("requests.cpu", "2"), amounts("requests.cpu", "1400m"), nil), refusesCPU, render.FitsNow,
			"Deployment/web lacks 4 pods of the new template, and there is room now: its controller tries again by itself, at the latest in about 55s.",
		},
		"one pod is larger than its template, and doesn't fit": {
			"350m", steps(1, 0), view("team", amounts("requests.cpu", "2"), amounts("requests.cpu", "1700m"), nil), refusesCPU, render.QuotaShort,
			"Deployment/web lacks 4 pods of the new template: crq/team is short of requests.cpu: 50m.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			scene := newScene(t)
			older := scene.olderPods(test.cpu, test.steps)
			scene.Limits.Views = append(scene.Limits.Views, test.view)
			scene.Events = append(scene.Events, refusedEvent("ReplicaSet", "web-1", test.message, 5))
			wantWhy(t, scene, test.cause, test.summary, older)
		})
	}
}

// databaseScene is a StatefulSet of pods of 250m each, without claims.
func databaseScene(t *testing.T, replicas int32) (*scene, *appsv1.StatefulSet) {
	t.Helper()
	set := database(replicas)
	set.Spec.VolumeClaimTemplates = nil
	set.Spec.Template.Spec.Containers = builders.Pod("shop", "x").Request("cpu", "250m").Obj().Spec.Containers
	kind := subjectOf(t, "sts/any").Kind
	return &scene{Situation: &reading.Situation{
		Subject: subjectOf(t, "sts/db"), Namespace: "shop", Chain: []reading.Link{{Kind: kind, Object: &set}},
	}}, &set
}

func TestWhyOfAStatefulSet(t *testing.T) {
	const larger = "create Pod db-0 in StatefulSet db failed error: exceeded quota: team, requested: requests.cpu=350m, used: requests.cpu=700m, " +
		"limited: requests.cpu=1"
	changed := func(set *appsv1.StatefulSet, ago time.Duration) {
		set.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: "kubectl", Time: ptr.To(before(ago)), FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:template":{}}}`),
		}}
	}
	for name, test := range map[string]struct {
		replicas int32
		change   func(*scene, *appsv1.StatefulSet)
		cause    render.Cause
		summary  string
	}{
		"another webhook adds a sidecar": {
			1, func(s *scene, _ *appsv1.StatefulSet) {
				s.Events = append(s.Events, refusedEvent("StatefulSet", "db", larger, 5))
			},
			render.QuotaShort, "StatefulSet/db lacks its pod: crq/team is short of requests.cpu: 50m.",
		},
		"its template was changed before it was refused": {
			1, func(s *scene, set *appsv1.StatefulSet) {
				changed(set, time.Minute)
				s.Events = append(s.Events, refusedEvent("StatefulSet", "db", larger, 5))
			},
			render.QuotaShort, "StatefulSet/db lacks its pod: crq/team is short of requests.cpu: 50m.",
		},
		"its template was changed after it was refused": {
			1, func(s *scene, set *appsv1.StatefulSet) {
				changed(set, time.Second)
				s.Events = append(s.Events, refusedEvent("StatefulSet", "db", larger, 5))
			},
			render.FitsNow, "StatefulSet/db lacks its pod, and there is room now: its controller tries again by itself, at the latest in about 55s.",
		},
		"it has made a pod since it was refused": {
			3, func(s *scene, _ *appsv1.StatefulSet) {
				pod := oldPod("db-0", corev1.PodRunning, "StatefulSet", "db")
				pod.CreationTimestamp = before(5 * time.Minute)
				s.Pods = []corev1.Pod{pod}
				s.Events = append(s.Events, refusedEvent("StatefulSet", "db", byMesh, 50*60))
				s.Limits.Views = nil
			},
			render.NotRefused, "StatefulSet/db lacks 2 of its 3 pods, but no refusal is known, and there is room: a StatefulSet may wait until db-0 is ready.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			scene, set := databaseScene(t, test.replicas)
			scene.Limits.Views = []quotav1.LocalResourceQuota{view("team", amounts("requests.cpu", "1"), amounts("requests.cpu", "700m"), nil)}
			test.change(scene, set)
			wantWhy(t, scene, test.cause, test.summary)
		})
	}
}
