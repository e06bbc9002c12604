// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
			scene.limited(test.view)
			scene.refused(test.message, 5)
			wantWhy(t, scene, test.cause, test.summary, older)
		})
	}
}

// Claims are made once there are pods.
func TestWhyNamesFirstWhatKeepsPodsAway(t *testing.T) {
	scene := newScene(t)
	scratch := builders.Pod("shop", "x").EphemeralVolume("scratch", "2Gi").Obj().Spec.Volumes
	scene.deployment.Spec.Template.Spec.Volumes, scene.set.Spec.Template.Spec.Volumes = scratch, scratch
	scene.Surroundings.LimitRanges = []corev1.LimitRange{{ObjectMeta: builders.Meta("shop", "claims"), Spec: corev1.LimitRangeSpec{
		Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypePersistentVolumeClaim, Max: amounts("storage", "1Gi")}},
	}}}
	scene.limited(view("team", amounts("pods", "1"), amounts("pods", "1"), nil))
	scene.refused("Error creating: exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1", 5)
	const wanted = "Deployment/web lacks 3 of its 4 pods: crq/team is short of pods: 3. Besides, a LimitRange refuses its PersistentVolumeClaims: " +
		"maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi."
	wantWhy(t, scene, render.QuotaShort, wanted)
	if got, err := scene.diagnosed(t); err != nil || !strings.Contains(strings.Join(got.Remedies, "\n"), "kubectl describe limitrange -n shop") {
		t.Errorf("%v, and the remedies lack that of the LimitRange: %q", err, got.Remedies)
	}
	// Once there is room, that is next.
	scene.Limits.Views = nil
	scene.limited(view("team", amounts("pods", "9"), amounts("pods", "1"), nil))
	wantWhy(t, scene, render.OtherRefused, "Deployment/web lacks 3 of its 4 pods: a LimitRange refuses it: "+
		"maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi.")
}

// databaseScene is a StatefulSet of pods of 250m each, without claims.
func databaseScene(t *testing.T, replicas int32) (*scene, *appsv1.StatefulSet) {
	t.Helper()
	set := database(replicas)
	set.Spec.VolumeClaimTemplates = nil
	set.Spec.Template.Spec.Containers = builders.Pod("shop", "x").Request("cpu", "250m").Obj().Spec.Containers
	return &scene{Situation: &reading.Situation{
		Subject: subjectOf("statefulset/db"), Namespace: "shop", Chain: []client.Object{&set},
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
	const another = "Deployment/web lacks 3 of its 4 pods: webhook mesh, which doesn't answer, refuses it: Internal error occurred: " +
		"failed calling webhook \"mesh\": connection refused."
	for name, test := range map[string]struct {
		change  func(*scene)
		cause   render.Cause
		summary string
	}{
		"the ReplicaSet says that it was refused last": {
			func(s *scene) { s.Events = append(s.Events, refusedEvent("ReplicaSet", "web-1", byMesh, long)) }, render.OtherRefused, another,
		},
		"the ReplicaSet doesn't say so any more": {func(s *scene) { s.served = true; s.refused(byMesh, long) }, render.NotRefused, noneKnown},
		"the ReplicaSet doesn't say so yet":      {func(s *scene) { s.served = true; s.refused(byMesh, 2) }, render.OtherRefused, another},
		"it has made a pod since, and is refused again": {
			func(s *scene) {
				s.Pods[0].CreationTimestamp = before(5 * time.Minute)
				s.Events = append(s.Events, refusedEvent("ReplicaSet", "web-1", byMesh, long), refusedEvent("ReplicaSet", "web-1", byTeam, 10))
				s.limited(view("team", amounts("requests.cpu", "1"), amounts("requests.cpu", "900m"), nil))
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
		Subject: subjectOf("daemonset/agent"), Namespace: "shop", Chain: []client.Object{set},
	}}
	wantWhy(t, scene, render.NotCounted, "It can't be told whether anything is refused: the controller of DaemonSet/agent hasn't looked at it yet, "+
		"or not since it was changed; ask again in a moment.")
}

func TestWhyOfAQuotaThatItCannotSee(t *testing.T) {
	scene := newScene(t)
	scene.refused(byOpenShift, 5)
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
		scene.Subject = subjectOf("horizontalpodautoscaler/web")
		scene.Chain = []client.Object{scaler, scene.Chain[1]}
		return scene
	}
	t.Run("that scales a ReplicaSet", func(t *testing.T) {
		scene := scaling(t, "ReplicaSet", "web-1")
		scene.Limits.Views = []quotav1.LocalResourceQuota{view("team", amounts("requests.cpu", "1"), amounts("requests.cpu", "900m"), nil)}
		scene.refused(byTeam, 5)
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

func TestWhyOfOneObject(t *testing.T) {
	claimEvent := corev1.Event{
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "one"}, Reason: "FailedBinding", LastTimestamp: metav1.NewTime(noon),
		Message: "ephemeral volume scratch: create PVC one-scratch: exceeded quota: team, requested: persistentvolumeclaims=1, " +
			"used: persistentvolumeclaims=2, limited: persistentvolumeclaims=2",
	}
	refused := corev1.Event{LastTimestamp: metav1.NewTime(noon), Message: `refused pods "one": exceeded quota: team, requested: pods=1, used: pods=5, limited: pods=5`}
	pending := builders.Pod("shop", "one").Obj()
	pending.Status.Phase = corev1.PodPending
	waiting := pending.DeepCopy()
	waiting.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{
		Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}},
	}}}
	full := view("team", amounts("pods", "5", "persistentvolumeclaims", "2"), amounts("pods", "5", "persistentvolumeclaims", "2"), nil)
	free := view("team", amounts("pods", "5", "persistentvolumeclaims", "2"), amounts("pods", "4", "persistentvolumeclaims", "1"), nil)
	for name, test := range map[string]struct {
		subject string
		object  client.Object
		event   corev1.Event
		view    quotav1.LocalResourceQuota
		want    string
	}{
		"a pod exists":             {"pod/one", pending, corev1.Event{}, full, "Nothing is refused: Pod/one exists, and is pending."},
		"its claim is refused":     {"pod/one", waiting, claimEvent, full, "Pod/one lacks 1 PersistentVolumeClaim: crq/team is short of persistentvolumeclaims: 1."},
		"its claim fits now":       {"pod/one", waiting, claimEvent, free, "Pod/one lacks 1 PersistentVolumeClaim, and there is room now: its controller tries again by itself, at the latest in about 1s."},
		"it was refused":           {"pod/one", nil, refused, full, "Pod/one doesn't exist, because it was refused: crq/team is short of pods: 1."},
		"it fits now":              {"pod/one", nil, refused, free, "Pod/one doesn't exist, because it was refused, and there is room now: create it again."},
		"a Service has no address": {"service/one", builders.Service("shop", "one").Type(corev1.ServiceTypeLoadBalancer, 80).Obj(), corev1.Event{}, full, "Nothing is refused: Service/one exists, and its load balancer has no address yet."},
	} {
		t.Run(name, func(t *testing.T) {
			scene := &scene{Situation: &reading.Situation{Subject: subjectOf(test.subject), Namespace: "shop", Events: []corev1.Event{test.event}}}
			scene.limited(test.view)
			if test.object != nil {
				scene.Chain = []client.Object{test.object}
			}
			got, err := scene.diagnosed(t)
			if err != nil || got.Summary != test.want {
				t.Errorf("got %v, %v", got.Summary, err)
			}
		})
	}
	t.Run("nobody has heard of it", func(t *testing.T) {
		scene := &scene{Situation: &reading.Situation{Subject: subjectOf("pod/one"), Namespace: "shop"}}
		_, err := scene.diagnosed(t)
		if !apierrors.IsNotFound(err) || err.Error() != `pods "one" not found` {
			t.Errorf("got %v", err)
		}
	})
}

func TestWhyOfACronJob(t *testing.T) {
	cron, job := builders.CronJob("shop", "nightly"), builders.Job("shop", "nightly-1")
	cron.UID, job.UID = "cron", "job"
	for _, spec := range []*batchv1.JobSpec{&cron.Spec.JobTemplate.Spec, &job.Spec} {
		spec.Parallelism, spec.Completions, spec.Suspend = ptr.To[int32](1), ptr.To[int32](1), nil
	}
	chain := []client.Object{cron, job}
	full, free := view("team", amounts("pods", "1"), amounts("pods", "1"), nil), view("team", amounts("pods", "2"), amounts("pods", "1"), nil)
	const short = "The next run of CronJob/nightly doesn't fit: crq/team is short of pods: 1."
	for name, test := range map[string]struct {
		chain []client.Object
		ended bool
		view  quotav1.LocalResourceQuota
		want  string
		// change is done to the CronJob.
		change func(*batchv1.CronJob)
	}{
		"no Job yet":         {chain: chain[:1], view: full, want: short},
		"its Job has ended":  {chain: chain, ended: true, view: full, want: short},
		"its Job is refused": {chain: chain, view: full, want: "Job/nightly-1 lacks its pod: crq/team is short of pods: 1."},
		"there is room":      {chain: chain, ended: true, view: free, want: "Nothing is refused: the next run of CronJob/nightly would fit now."},
		"it is suspended": {
			chain: chain, ended: true, view: full, want: "Nothing is refused: CronJob/nightly is suspended, so that no run begins.",
			change: func(cron *batchv1.CronJob) { cron.Spec.Suspend = ptr.To(true) },
		},
		"its policy forbids a run beside the current one": {
			chain: chain[:1], view: full,
			want: "Nothing is refused: a run of CronJob/nightly goes on, and its concurrencyPolicy lets no other one run beside it.",
			change: func(cron *batchv1.CronJob) {
				cron.Spec.ConcurrencyPolicy, cron.Status.Active = batchv1.ForbidConcurrent, []corev1.ObjectReference{{Name: "nightly-1"}}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			job.Status.Conditions = nil
			if test.ended {
				job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
			}
			scene := &scene{Situation: &reading.Situation{Subject: subjectOf("cronjob/nightly"), Namespace: "shop", Chain: test.chain}}
			scene.limited(test.view)
			if test.change != nil {
				changed := cron.DeepCopy()
				test.change(changed)
				scene.Chain = append([]client.Object{changed}, test.chain[1:]...)
			}
			// As long as the Job goes on, it was refused by another webhook; afterwards that is over.
			if test.ended {
				scene.Events = append(scene.Events, refusedEvent("Job", "nightly-1", byMesh, 600))
			}
			got, err := scene.diagnosed(t)
			if err != nil || got.Summary != test.want {
				t.Errorf("got %v, %v", got.Summary, err)
			}
		})
	}
}

func TestWhyFollowsPodsToTheirClaims(t *testing.T) {
	scene := newScene(t)
	scene.deployment.Spec.Replicas = ptr.To[int32](3)
	scene.Pods = nil
	for _, name := range []string{"a", "b", "c"} {
		pod := builders.Pod("shop", "web-1-"+name).Obj()
		pod.UID, pod.Status.Phase, pod.OwnerReferences = types.UID(name), corev1.PodPending, controlledBy("ReplicaSet", "web-1", "web-1")
		pod.Spec.Volumes = []corev1.Volume{{Name: "w", VolumeSource: corev1.VolumeSource{
			Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}},
		}}}
		scene.Pods = append(scene.Pods, *pod)
		event := refusedEvent("Pod", pod.Name, "ephemeral volume w: create PVC "+pod.Name+"-w: exceeded quota: team, requested: "+
			"persistentvolumeclaims=1, used: persistentvolumeclaims=2, limited: persistentvolumeclaims=2", 10)
		event.Reason = "FailedBinding"
		if name != "a" {
			scene.Events = append(scene.Events, event)
		}
	}
	scene.Present.Claims, scene.warnings = sets.New("web-1-a-w"), map[string]string{"Pod/web-1-a": "FailedBinding: the same again"}
	scene.limited(view("team", amounts("persistentvolumeclaims", "2"), amounts("persistentvolumeclaims", "2"), nil))
	got, err := scene.diagnosed(t)
	if err != nil {
		t.Fatal(err)
	}
	want := "Deployment/web lacks 2 PersistentVolumeClaims: crq/team is short of persistentvolumeclaims: 2."
	last := got.Chain[len(got.Chain)-1]
	if got.Cause != render.QuotaShort || got.Summary != want || last.Name != "web-1-b" || !strings.HasSuffix(last.State, "; 1 other pod of it likewise") ||
		len(last.Refusals) != 1 || last.Refusals[0].Count != 6 {
		t.Errorf("got %s: %s, and %q %+v", got.Cause, got.Summary, last.State, last.Refusals)
	}
	if one := got.Quotas[0].Rows[0].One; one.Value() != 1 || len(got.Pods) != 1 || got.Pods[0].Message != "" {
		t.Errorf("the next one needs %s, and its pods are %+v", one.String(), got.Pods)
	}
}

// TestWhyNamesWhoElseRefuses has the known components that refuse, and the remedy
// for each.
func TestWhyNamesWhoElseRefuses(t *testing.T) {
	for message, want := range map[string]string{
		`pods "web-1-x" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true`:                                         "Pod Security: change the level restricted:latest",
		`pods "web-1-x" is forbidden: ValidatingAdmissionPolicy 'images' with binding 'all' denied request: no`:                               "ValidatingAdmissionPolicy images: message of the policy",
		`Internal error occurred: failed calling webhook "mesh.example.com": connect: connection refused`:                                     "webhook mesh.example.com, which doesn't answer,: make webhook mesh.example.com answer",
		`admission webhook "policy" denied the request: no`:                                                                                   "webhook policy: message of the webhook",
		`pods "web-1-x" is forbidden: minimum memory usage per Container is 8Mi, but request is 1Mi`:                                          "a LimitRange: kubectl describe limitrange -n shop",
		`Pod "web-1-x" is invalid: spec.containers[0].resources.requests: Invalid value: "1": must be less than or equal to cpu limit of 10m`: "a LimitRange: kubectl describe limitrange -n shop",
		`pods "web-1-x" is forbidden: error looking up service account shop/robot: serviceaccount "robot" not found`:                          "the API server: kubectl create serviceaccount robot -n shop",
		`pods "web-1-x" is forbidden: no PriorityClass with name high was found`:                                                              "the API server: create it, or name another one",
		`pods "web-1-x" is forbidden: unable to create new content in namespace shop because it is being terminated`:                          "the API server: another namespace",
		`pods is forbidden: User "system:serviceaccount:a:b" cannot create resource "pods" in API group ""`:                                   "RBAC: the right that the message names",
		`Pod "web-1-x" is invalid: metadata.labels: Invalid value: "-"`:                                                                       "the API server: Correct the field",
		`no`: "something else than a quota: API server's log",
	} {
		scene := newScene(t)
		for i, name := range []string{"bcdfg", "hjklm", "npqrs"} {
			scene.Events = append(scene.Events, refusedEvent("ReplicaSet", "web-1", "Error creating: "+strings.ReplaceAll(message, "web-1-x", "web-1-"+name), 10+i))
		}
		got, err := scene.diagnosed(t)
		if err != nil {
			t.Fatal(err)
		}
		by, remedy, _ := strings.Cut(want, ": ")
		refusals := got.Chain[1].Refusals
		if got.Cause != render.OtherRefused || len(refusals) != 1 || refusals[0].By != by || refusals[0].Count != 9 || !strings.Contains(got.Remedies[0], remedy) {
			t.Errorf("of %q got %s %+v %q", message, got.Cause, refusals, got.Remedies)
		}
	}
}

func TestWhySaysWhatStandsInTheWayAndWhereToLook(t *testing.T) {
	const pod, claim, deployment = "kubectl describe pod/web-1-a -n shop", "kubectl describe persistentvolumeclaim/data -n shop", "kubectl describe replicaset/web-1 -n shop"
	waiting := corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"}}}
	for name, test := range map[string]struct {
		change   func(*scene)
		summary  string
		remedies []string
	}{
		"an event of a pod": {func(s *scene) {
			s.Pods[0].Status = corev1.PodStatus{Phase: corev1.PodPending}
			s.warnings = map[string]string{"Pod/web-1-a": "FailedMount: secret \"key\" not found"}
		}, `No quota causes that 1 of them can't run: pending: FailedMount: secret "key" not found.`, []string{pod}},
		"a pod that crashes": {func(s *scene) {
			s.Pods[0].Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{waiting}}
		}, "can't run: CrashLoopBackOff: back-off.", []string{pod, "kubectl logs pod/web-1-a --previous -n shop"}},
		"a Deployment that is paused": {func(s *scene) { s.deployment.Spec.Paused = true }, "there is the 1 pod of Deployment/web.",
			[]string{"kubectl rollout resume deployment/web -n shop"}},
		"a Job that is suspended": {func(s *scene) {
			job := builders.Job("shop", "load")
			job.Spec.Suspend = ptr.To(true)
			s.Subject, s.Chain = subjectOf("job/load"), []client.Object{job}
		}, "Job/load is suspended.", []string{`kubectl patch job/load -p '{"spec":{"suspend":false}}' -n shop`}},
		"nothing": {func(*scene) {}, "there is the 1 pod of Deployment/web.", nil},
		"a controller that has not acted": {func(s *scene) { s.deployment.Spec.Replicas = ptr.To[int32](2) },
			"but no refusal is known, and there is room", []string{deployment}},
		"an event of a claim": {func(s *scene) {
			pending := builders.VolumeClaim("shop", "data").Obj()
			pending.Status.Phase = corev1.ClaimPending
			s.Subject, s.Chain = subjectOf("persistentvolumeclaim/data"), []client.Object{pending}
			s.warnings = map[string]string{"PersistentVolumeClaim/data": "ProvisioningFailed: no storage class."}
		}, "its phase is Pending; the latest warning is ProvisioningFailed: no storage class.", []string{claim}},
	} {
		t.Run(name, func(t *testing.T) {
			scene := newScene(t)
			scene.deployment.Spec.Replicas = ptr.To[int32](1)
			test.change(scene)
			got, err := scene.diagnosed(t)
			if err != nil || got.Result != "fits" || !strings.HasSuffix(got.Summary, test.summary) && !strings.Contains(got.Summary, test.summary) ||
				len(got.Remedies) != len(test.remedies) {
				t.Fatalf("got %v, %+v", err, got)
			}
			for i, want := range test.remedies {
				if !strings.HasPrefix(got.Remedies[i], want) {
					t.Errorf("got %q, want %q", got.Remedies[i], want)
				}
			}
		})
	}
}

func TestWhySaysWhatToDoWithoutARight(t *testing.T) {
	for resource, refusal := range map[string]string{"localresourcequotas": byTeam, "events": ""} {
		scene := newScene(t)
		scene.Forbidden = []string{resource}
		if refusal != "" {
			scene.refused(refusal, 10)
		}
		got, err := scene.diagnosed(t)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"Ask an administrator for the role view in namespace shop, and then ask again."}
		if diff := cmp.Diff(want, got.Remedies); diff != "" {
			t.Errorf("without %s (-want,+got):\n%s", resource, diff)
		}
	}
}
