// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// subjectOf parses a text such as "deployment/web".
func subjectOf(text string) reading.Subject {
	kind, name, _ := strings.Cut(text, "/")
	at := slices.IndexFunc(reading.Kinds(), func(known schema.GroupVersionKind) bool { return strings.EqualFold(known.Kind, kind) })
	return reading.Subject{GroupVersionKind: reading.Kinds()[at], Name: name}
}

// scene is a Deployment of four pods of 250m each, one of which is there, and its ReplicaSet.
type scene struct {
	deployment *appsv1.Deployment
	set        *appsv1.ReplicaSet
	// served: the ReplicaSet's controller has succeeded since.
	served bool
	// warnings are the latest of objects, as in "Pod/web".
	warnings map[string]string
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
	return &scene{deployment: deployment, set: set, Situation: &reading.Situation{
		Subject: subjectOf("deployment/web"), Namespace: "shop",
		Chain: []client.Object{deployment, set},
		Pods:  []corev1.Pod{*pod},
	}}
}

// limited adds a shared quota.
func (s *scene) limited(by quotav1.LocalResourceQuota) { s.Limits.Views = append(s.Limits.Views, by) }

// refused adds that the ReplicaSet's controller was refused so long ago.
func (s *scene) refused(message string, secondsAgo int) {
	s.Events = append(s.Events, refusedEvent("ReplicaSet", "web-1", message, secondsAgo))
}

func controlledBy(kind, name, uid string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID(uid), Controller: ptr.To(true)}}
}

// failReplicaSet makes the ReplicaSet have its controller's last refusal, as it does until it succeeds.
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

// diagnosed fills in the reader's results.
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
	return diagnose(s.Situation, fitting.NewTypes(), newMeter(clocktesting.NewFakeClock(noon), s.Surroundings),
		func(of render.ObjectName) string { return s.warnings[of.String()] })
}

const (
	byTeam = `Error creating: admission webhook "x" denied the request: exceeded quota: team, requested: requests.cpu=250m, used: requests.cpu=900m, limited: requests.cpu=1`
	byOwn  = `Error creating: pods "web-1-x" is forbidden: exceeded quota: own, requested: pods=1, used: pods=1, limited: pods=1`
)

func TestWhy(t *testing.T) {
	cpu := func(used string) quotav1.LocalResourceQuota {
		return view("team", amounts("requests.cpu", "1"), amounts("requests.cpu", used), amounts("requests.cpu", "250m"))
	}
	inDoubt := "too much in doubt for quota: team, requested: pods=1, held for missing objects: pods=2, allowed for missing objects: pods=2"
	for name, test := range map[string]struct {
		change  func(*scene)
		cause   render.Cause
		summary string
	}{
		"a shared quota is short": {
			func(s *scene) { s.limited(cpu("900m")); s.refused(byTeam, 10) },
			render.QuotaShort, "Deployment/web lacks 3 of its 4 pods: crq/team is short of requests.cpu: 650m.",
		},
		"no refusal is known, and it is short": {
			func(s *scene) { s.Limits.Views = append(s.Limits.Views, cpu("900m")) },
			render.QuotaShort, "Deployment/web lacks 3 of its 4 pods: crq/team is short of requests.cpu: 650m.",
		},
		"a ResourceQuota is short": {
			func(s *scene) {
				s.Limits.Quotas = append(s.Limits.Quotas, native("own", amounts("pods", "1"), amounts("pods", "1")))
				s.refused(byOwn, 10)
			},
			render.QuotaShort, "Deployment/web lacks 3 of its 4 pods: quota/own is short of pods: 3.",
		},
		"both are short": {
			func(s *scene) {
				s.limited(cpu("900m"))
				s.Limits.Quotas = append(s.Limits.Quotas, native("own", amounts("pods", "1"), amounts("pods", "1")))
			},
			render.QuotaShort, "Deployment/web lacks 3 of its 4 pods: crq/team is short of requests.cpu: 650m; quota/own is short of pods: 3.",
		},
		"there is room again": {
			func(s *scene) { s.limited(cpu("250m")); s.refused(byTeam, 10) },
			render.FitsNow, "Deployment/web lacks 3 of its 4 pods, and there is room now: its controller tries again by itself, at the latest in about 50s.",
		},
		"there is room again, and the operator wakes it": {
			func(s *scene) {
				team := cpu("250m")
				team.Status.Waiting = []quotav1.WaitingOwner{{Kind: "ReplicaSet", Name: "web-1", Since: metav1.NewTime(noon)}}
				team.Status.Conditions = []metav1.Condition{{Type: quotav1.ConditionBlocked, Message: "1 waits; " + quotav1.WokenWhenItFits}}
				s.limited(team)
				s.refused(byTeam, 100)
			},
			render.FitsNow, "Deployment/web lacks 3 of its 4 pods, and there is room now: its controller tries again by itself at any moment, " +
				"and the operator wakes it before.",
		},
		"there is room again, and the operator doesn't wake": {
			func(s *scene) {
				team := cpu("250m")
				team.Status.Waiting = []quotav1.WaitingOwner{{Kind: "ReplicaSet", Name: "web-1", Since: metav1.NewTime(noon)}}
				team.Status.Conditions = []metav1.Condition{{Type: quotav1.ConditionBlocked, Message: "their controllers try again now and then"}}
				s.limited(team)
				s.refused(byTeam, 100)
			},
			render.FitsNow, "Deployment/web lacks 3 of its 4 pods, and there is room now: its controller tries again by itself at any moment.",
		},
		"another webhook makes pods larger than the template": {
			func(s *scene) {
				s.limited(view("team", amounts("requests.cpu", "2"), amounts("requests.cpu", "1"), nil))
				s.refused("exceeded quota: team, requested: requests.cpu=1100m, "+
					"used: requests.cpu=1, limited: requests.cpu=2", 10)
			},
			render.QuotaShort, "Deployment/web lacks 3 of its 4 pods: crq/team is short of requests.cpu: 2300m.",
		},
		"pods don't state what they request": {
			func(s *scene) { s.limited(view("team", amounts("limits.cpu", "9"), amounts("limits.cpu", "0"), nil)) },
			render.QuotaRefused, "Deployment/web lacks 3 of its 4 pods: crq/team refuses pods that don't state limits.cpu for: app.",
		},
		"too much is in doubt": {
			func(s *scene) { s.limited(cpu("250m")); s.refused(inDoubt, 10) },
			render.QuotaRefused, "Deployment/web lacks 3 of its 4 pods: this namespace holds too much of crq/team for objects that were admitted and never appeared.",
		},
		"it wasn't counted": {
			func(s *scene) {
				s.limited(cpu("250m"))
				s.refused("status unknown for quota: team, resources: pods (x)", 10)
			},
			render.QuotaRefused, "Deployment/web lacks 3 of its 4 pods: crq/team was not counted when it was asked last.",
		},
		"it isn't counted": {
			func(s *scene) { s.limited(view("team", amounts("requests.cpu", "1"), nil, nil)) },
			render.NotCounted, "Deployment/web lacks 3 of its 4 pods, and what is left can't be told: crq/team isn't counted yet; ask again in a moment.",
		},
		"the view can't be read": {
			func(s *scene) { s.Forbidden = []string{"localresourcequotas"}; s.refused(byTeam, 10) },
			render.NotCounted, "Deployment/web lacks 3 of its 4 pods, and what is left can't be told: you may not read the quota.",
		},
		"no quota covers what is limited by default": {
			func(s *scene) { s.refused("insufficient quota to consume: pods", 10) },
			render.QuotaRefused, "Deployment/web lacks 3 of its 4 pods: it consumes what is limited by default, and no quota covers that.",
		},
		"a LimitRange refuses": {
			func(s *scene) {
				s.Surroundings.LimitRanges = []corev1.LimitRange{{ObjectMeta: builders.Meta("shop", "small"), Spec: corev1.LimitRangeSpec{
					Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypePod, Max: amounts("cpu", "100m")}},
				}}}
			},
			render.OtherRefused, "Deployment/web lacks 3 of its 4 pods: a LimitRange refuses it: maximum cpu usage per Pod is 100m.  " +
				"No limit is specified.",
		},
		"another webhook refuses, and it would be short": {
			func(s *scene) {
				s.limited(cpu("900m"))
				s.Events = append(s.Events, refusedEvent("ReplicaSet", "web-1", `Error creating: admission webhook "policy" denied the request: no.`, 10),
					refusedEvent("ReplicaSet", "web-1", byTeam, 100))
			},
			render.OtherRefused, `Deployment/web lacks 3 of its 4 pods: webhook policy refuses it: admission webhook "policy" ` +
				"denied the request: no. Besides, crq/team is short of requests.cpu: 650m.",
		},
		"the view can't be read, and no refusal is known": {
			func(s *scene) { s.Forbidden = []string{"localresourcequotas"} },
			render.NotCounted, "Deployment/web lacks 3 of its 4 pods, and what is left can't be told: you may not read the quota.",
		},
		"events can't be read, and there is room": {
			func(s *scene) { s.Forbidden = []string{"events"} },
			render.NotCounted, "Deployment/web lacks 3 of its 4 pods, and it can't be told whether they are refused: you may not read events.",
		},
		"pods can't be read, so that statuses count": {
			func(s *scene) {
				s.Pods, s.Forbidden, s.Present.Unlisted = nil, []string{"pods"}, true
				s.deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 4, ReadyReplicas: 4, UpdatedReplicas: 4}
				s.limited(view("team", amounts("pods", "4"), amounts("pods", "4"), nil))
			},
			render.NotRefused, "Nothing is refused: there are all 4 pods of Deployment/web.",
		},
		"pods can't be read, and the room that older ones free isn't known": {
			func(s *scene) {
				s.Pods, s.Forbidden, s.Present.Unlisted = nil, []string{"pods"}, true
				s.deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 4, ReadyReplicas: 4}
				s.limited(cpu("900m"))
			},
			render.NotCounted, "Deployment/web lacks 4 pods of the new template, and it can't be told whether that fits: " +
				"more may be there, or be freed by older pods, than statuses say.",
		},
		"pods can't be read, and the status is older than the Deployment": {
			func(s *scene) {
				s.Pods, s.Forbidden, s.Present.Unlisted = nil, []string{"pods"}, true
				s.deployment.Generation, s.deployment.Status = 2, appsv1.DeploymentStatus{ObservedGeneration: 1}
			},
			render.NotCounted, "It can't be told whether anything is refused: the controller of Deployment/web hasn't looked at it yet, " +
				"or not since it was changed; ask again in a moment.",
		},
		"nothing is known": {
			func(*scene) {},
			render.NotRefused, "Deployment/web lacks 3 of its 4 pods, but no refusal is known, and there is room: events are kept for an hour, " +
				"and its controller may be about to act.",
		},
		"all is there": {
			func(s *scene) { s.deployment.Spec.Replicas = ptr.To[int32](1) },
			render.NotRefused, "Nothing is refused: there is the 1 pod of Deployment/web.",
		},
		"all is there, and doesn't run": {
			func(s *scene) {
				s.deployment.Spec.Replicas = ptr.To[int32](1)
				s.Pods[0].Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
					{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes are available"},
				}}
			},
			render.NotRefused, "Nothing is refused: there is the 1 pod of Deployment/web. No quota causes that 1 of them can't run: not scheduled: 0/3 nodes are available.",
		},
		"nothing is wanted": {
			func(s *scene) { s.deployment.Spec.Replicas = ptr.To[int32](0) },
			render.NotRefused, "Nothing is refused: Deployment/web wants no more pods.",
		},
		"there is no ReplicaSet yet": {
			func(s *scene) {
				s.Chain, s.set, s.Pods = s.Chain[:1], nil, nil
				s.limited(view("team", amounts("count/replicasets.apps", "1"), amounts("count/replicasets.apps", "1"), nil))
			},
			render.QuotaShort, "Deployment/web lacks all 4 pods and 1 ReplicaSet: crq/team is short of count/replicasets.apps: 1.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			scene := newScene(t)
			test.change(scene)
			got, err := scene.diagnosed(t)
			if err != nil {
				t.Fatal(err)
			}
			if got.Cause != test.cause || got.Summary != test.summary {
				t.Errorf("got %s: %s\nwant %s: %s", got.Cause, got.Summary, test.cause, test.summary)
			}
		})
	}
}

func TestTheQuotaThatRefusedIsToldFromItsNamesake(t *testing.T) {
	for name, test := range map[string]struct{ message, want string }{
		"the shared one": {"exceeded quota: same, requested: pods=1, used: pods=9, limited: pods=9", "crq/same"},
		"the native one": {"exceeded quota: same, requested: pods=1, used: pods=4, limited: pods=4", "quota/same"},
		"neither":        {"exceeded quota: gone, requested: pods=1, used: pods=4, limited: pods=4", "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			scene := newScene(t)
			scene.limited(view("same", amounts("pods", "9"), amounts("pods", "9"), nil))
			scene.Limits.Quotas = append(scene.Limits.Quotas, native("same", amounts("pods", "4"), amounts("pods", "4")))
			scene.refused(test.message, 10)
			got, err := scene.diagnosed(t)
			if err != nil || got.Chain[1].Refusals[0].Quota != test.want {
				t.Errorf("got %+v, %v", got.Chain[1].Refusals, err)
			}
		})
	}
}

func TestWhyNamesNeedsUsersAndRemedies(t *testing.T) {
	scene := newScene(t)
	team := view("team", amounts("requests.cpu", "1", "pods", "9"), amounts("requests.cpu", "900m", "pods", "3"), amounts("requests.cpu", "850m", "pods", "2"))
	team.Status.Waiting = []quotav1.WaitingOwner{
		{Kind: "ReplicaSet", Name: "web-1", Since: metav1.NewTime(noon.Add(-time.Minute)), Short: amounts("requests.cpu", "150m")},
		{Kind: "ReplicaSet", Name: "other", Since: metav1.NewTime(noon)},
	}
	scene.set.Annotations = map[string]string{quotav1.RoomAnnotation: noon.Add(-time.Hour).Format(time.RFC3339)}
	scene.limited(team)
	scene.refused(byTeam, 10)
	for _, name := range []string{"d", "c", "b", "a"} {
		scene.Pods = append(scene.Pods, *builders.Pod("shop", name).Request("cpu", "200m").Obj())
	}
	got, err := scene.diagnosed(t)
	if err != nil {
		t.Fatal(err)
	}
	user := func(name string) render.WhyUser {
		return render.WhyUser{ObjectName: render.ObjectName{Kind: "Pod", Name: name}, Used: resource.MustParse("200m")}
	}
	want := []render.WhyQuota{{Quota: "crq/team", Rows: []render.WhyRow{
		{
			Resource: "pods", One: resource.MustParse("1"), All: resource.MustParse("3"), Available: ptr.To(resource.MustParse("6")),
			Short: ptr.To(resource.MustParse("0")), Hard: resource.MustParse("9"), Used: ptr.To(resource.MustParse("3")), Here: ptr.To(resource.MustParse("2")),
		},
		{
			Resource: "requests.cpu", One: resource.MustParse("250m"), All: resource.MustParse("750m"), Available: ptr.To(resource.MustParse("100m")),
			Short: ptr.To(resource.MustParse("650m")), Hard: resource.MustParse("1"), Used: ptr.To(resource.MustParse("900m")),
			Here: ptr.To(resource.MustParse("850m")), Largest: []render.WhyUser{user("a"), user("b"), user("c")},
		},
	}}}
	if diff := cmp.Diff(want, got.Quotas, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("quotas (-want,+got):\n%s", diff)
	}
	if len(got.Waiting) != 1 || got.Waiting[0].Quota != "crq/team" || got.Chain[1].Woken == nil || got.Chain[0].Woken != nil {
		t.Errorf("waiting %+v, chain %+v", got.Waiting, got.Chain)
	}
	remedies := []string{
		"Delete or shrink something in any namespace of the quota that uses requests.cpu: 650m.",
		"Ask an administrator to raise spec.quota.hard of ClusterResourceQuota team: requests.cpu to 1650m.",
		"kubectl crq reclaim -n shop lists what holds quota and does nothing.",
	}
	if diff := cmp.Diff(remedies, got.Remedies); diff != "" {
		t.Errorf("remedies (-want,+got):\n%s", diff)
	}
}

// TestWhySendsNobodyForWhatOthersDoNotHold has a limit that is too small for the workload alone.
func TestWhySendsNobodyForWhatOthersDoNotHold(t *testing.T) {
	scene := newScene(t)
	scene.limited(view("team", amounts("requests.cpu", "600m", "pods", "3"), amounts("requests.cpu", "250m", "pods", "3"), nil))
	scene.Limits.Quotas = append(scene.Limits.Quotas, native("own", amounts("pods", "1"), amounts("pods", "1")))
	got, err := scene.diagnosed(t)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Delete or shrink something in any namespace of the quota that uses pods: 3.",
		"Shrink Deployment/web: nothing that crq/team counts holds as much as it lacks of requests.cpu: 400m.",
		"Ask an administrator to raise spec.quota.hard of ClusterResourceQuota team: pods to 6, requests.cpu to 1.",
		"Shrink Deployment/web: nothing that quota/own counts holds as much as it lacks of pods: 3.",
		"Raise spec.hard of ResourceQuota own, or ask an administrator to: pods to 4.",
		"kubectl crq reclaim -n shop lists what holds quota and does nothing.",
	}
	if diff := cmp.Diff(want, got.Remedies); diff != "" {
		t.Errorf("remedies (-want,+got):\n%s", diff)
	}
}
