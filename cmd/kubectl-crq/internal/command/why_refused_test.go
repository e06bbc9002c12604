// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// wantWhy diagnoses the scene, with more ReplicaSets of its Deployment.
func wantWhy(t *testing.T, scene *scene, cause render.Cause, summary string, older ...*appsv1.ReplicaSet) {
	t.Helper()
	got, err := scene.diagnosed(t, older...)
	if err != nil {
		t.Fatal(err)
	}
	if got.Cause != cause || got.Summary != summary {
		t.Errorf("got %s: %s\nwant %s: %s", got.Cause, got.Summary, cause, summary)
	}
}

const (
	byMesh      = `Error creating: Internal error occurred: failed calling webhook "mesh": connection refused`
	byOpenShift = `Error creating: pods "web-1-x" is forbidden: exceeded quota: openshift, requested: pods=1, used: pods=5, limited: pods=5`
)

func TestWhyDropsRefusalsThatAreOver(t *testing.T) {
	const long = 50 * 60
	const noneKnown = "Deployment/web lacks 3 of its 4 pods, but no refusal is known, and there is room: events are kept for an hour, " +
		"and its controller may be about to act."
	const another = "Deployment/web lacks 3 of its 4 pods: something else than a quota refuses it: Internal error occurred: " +
		"failed calling webhook \"mesh\": connection refused."
	for name, test := range map[string]struct {
		change  func(*scene)
		cause   render.Cause
		summary string
	}{
		"the ReplicaSet says that it was refused last": {
			func(s *scene) { s.Events = append(s.Events, refusedEvent("ReplicaSet", "web-1", byMesh, long)) }, render.OtherRefused, another,
		},
		"the ReplicaSet doesn't say so any more": {
			func(s *scene) {
				s.served = true
				s.Events = append(s.Events, refusedEvent("ReplicaSet", "web-1", byMesh, long))
			},
			render.NotRefused, noneKnown,
		},
		"the ReplicaSet doesn't say so yet": {
			func(s *scene) {
				s.served = true
				s.Events = append(s.Events, refusedEvent("ReplicaSet", "web-1", byMesh, 2))
			},
			render.OtherRefused, another,
		},
		"it has made a pod since, and is refused again": {
			func(s *scene) {
				s.Pods[0].CreationTimestamp = before(5 * time.Minute)
				s.Events = append(s.Events, refusedEvent("ReplicaSet", "web-1", byMesh, long), refusedEvent("ReplicaSet", "web-1", byTeam, 10))
				s.Limits.Views = append(s.Limits.Views, view("team", amounts("requests.cpu", "1"), amounts("requests.cpu", "900m"), nil))
				s.set.Status.Conditions = nil
			},
			render.QuotaShort, "Deployment/web lacks 3 of its 4 pods: crq/team is short of requests.cpu: 650m.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			scene := newScene(t)
			test.change(scene)
			wantWhy(t, scene, test.cause, test.summary)
		})
	}
}

func TestWhyOfADaemonSetThatNobodyHasLookedAt(t *testing.T) {
	set := &appsv1.DaemonSet{ObjectMeta: builders.Meta("shop", "agent")}
	scene := &scene{Situation: &reading.Situation{
		Subject: subjectOf(t, "ds/agent"), Namespace: "shop", Chain: []reading.Link{{Kind: subjectOf(t, "ds/agent").Kind, Object: set}},
	}}
	wantWhy(t, scene, render.NotCounted, "It can't be told whether anything is refused: the controller of DaemonSet/agent hasn't looked at it yet, "+
		"or not since it was changed; ask again in a moment.")
}

func TestWhyOfAQuotaThatItCannotSee(t *testing.T) {
	scene := newScene(t)
	scene.Events = append(scene.Events, refusedEvent("ReplicaSet", "web-1", byOpenShift, 5))
	got, err := scene.diagnosed(t)
	if err != nil {
		t.Fatal(err)
	}
	want := "Deployment/web lacks 3 of its 4 pods: refused by quota openshift, which this command can't see."
	if got.Result != "unknown" || got.Cause != render.NotCounted || got.Summary != want || len(got.Remedies) != 1 {
		t.Errorf("got %s, %s: %s %v", got.Result, got.Cause, got.Summary, got.Remedies)
	}
	scene.Limits.Views = []quotav1.LocalResourceQuota{view("team", amounts("pods", "3"), amounts("pods", "3"), nil)}
	wantWhy(t, scene, render.QuotaShort, "Deployment/web lacks 3 of its 4 pods: crq/team is short of pods: 3.")
}

func TestWhyOfAnAutoscaler(t *testing.T) {
	scaling := func(t *testing.T, kind, name string) *scene {
		t.Helper()
		scene, scaler := newScene(t), builders.HorizontalPodAutoscaler("shop", "web")
		scaler.Spec.ScaleTargetRef, scaler.Spec.MaxReplicas = autoscalingv2.CrossVersionObjectReference{Kind: kind, Name: name}, 4
		scene.Subject = subjectOf(t, "hpa/web")
		scene.Chain = []reading.Link{{Kind: scene.Subject.Kind, Object: scaler}, scene.Chain[1]}
		return scene
	}
	t.Run("that scales a ReplicaSet", func(t *testing.T) {
		scene := scaling(t, "ReplicaSet", "web-1")
		scene.Limits.Views = []quotav1.LocalResourceQuota{view("team", amounts("requests.cpu", "1"), amounts("requests.cpu", "900m"), nil)}
		scene.Events = append(scene.Events, refusedEvent("ReplicaSet", "web-1", byTeam, 5))
		wantWhy(t, scene, render.QuotaShort, "ReplicaSet/web-1 lacks 3 of its 4 pods: crq/team is short of requests.cpu: 650m.")
	})
	t.Run("that scales nothing", func(t *testing.T) {
		scene := scaling(t, "Deployment", "none")
		scene.Chain, scene.Target = scene.Chain[:1], reading.TargetMissing
		wantWhy(t, scene, render.NotRefused, "Nothing is refused: HorizontalPodAutoscaler/web scales Deployment/none to between 1 and 4 replicas; "+
			"Deployment/none doesn't exist.")
	})
	t.Run("that scales a custom resource", func(t *testing.T) {
		scene := scaling(t, "Rollout", "web")
		scene.Chain, scene.Target = scene.Chain[:1], reading.TargetForeign
		wantWhy(t, scene, render.NotCounted, "It can't be told whether anything is refused: HorizontalPodAutoscaler/web scales Rollout/web to between "+
			"1 and 4 replicas; Rollout/web is of a kind that this command doesn't know.")
	})
}
