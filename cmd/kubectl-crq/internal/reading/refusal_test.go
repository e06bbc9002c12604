// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"errors"
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
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i+1 < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func TestParseRefusal(t *testing.T) {
	const exceeded = "exceeded quota: team, requested: pods=1,requests.nvidia.com/gpu=1, used: pods=3,requests.nvidia.com/gpu=0, " +
		"limited: pods=3,requests.nvidia.com/gpu=4"
	of := Words{
		Reason: quotav1.ReasonQuotaExceeded, Quota: "team", Text: exceeded,
		Requested: amounts("pods", "1", "requests.nvidia.com/gpu", "1"), Used: amounts("pods", "3", "requests.nvidia.com/gpu", "0"),
		Limited: amounts("pods", "3", "requests.nvidia.com/gpu", "4"),
	}
	for name, test := range map[string]struct {
		message string
		want    Words
	}{
		"of the operator, in an event of a ReplicaSet": {
			`Error creating: admission webhook "objects.quota.sharedquota.dev" denied the request: ` + exceeded, of,
		},
		"of Kubernetes":    {`Error creating: pods "web-7x" is forbidden: ` + exceeded, of},
		"of a StatefulSet": {`create Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden: ` + exceeded, of},
		"in the event of a view": {
			`refused pods "web-6": ` + exceeded + "; used is what all namespaces that share the quota use: delete unneeded objects", of,
		},
		"of a pod that replaces another one": {
			"Error creating: " + exceeded + outcomes.SurgeTaken.Text("pods=1"),
			func() Words { words := of; words.Surge = amounts("pods", "1"); return words }(),
		},
		"of such a pod, with what is held": {
			"Error creating: " + exceeded + outcomes.Held.Text("pods=2", "12:00:00 UTC") + outcomes.SurgeTaken.Text("pods=1,requests.cpu=250m"),
			func() Words { words := of; words.Surge = amounts("pods", "1", "requests.cpu", "250m"); return words }(),
		},
		"of a pod that may replace another one": {"Error creating: " + exceeded + outcomes.SurgeUnproved.Text(errors.New("no answer")), of},
		"in doubt": {
			"too much in doubt for quota: team, requested: pods=1, held for missing objects: pods=2, allowed for missing objects: pods=2 " +
				"(requests in this namespace were admitted)",
			Words{
				Reason: quotav1.ReasonTooMuchInDoubt, Quota: "team", Requested: amounts("pods", "1"), Used: amounts("pods", "2"),
				Limited: amounts("pods", "2"),
				Text:    "too much in doubt for quota: team, requested: pods=1, held for missing objects: pods=2, allowed for missing objects: pods=2",
			},
		},
		"not all is stated": {
			`Error creating: pods "a" is forbidden: failed quota: team: must specify limits.cpu for: a; requests.memory for: a`,
			Words{
				Reason: quotav1.ReasonRequestIncomplete, Quota: "team", Missing: "limits.cpu for: a; requests.memory for: a",
				Text: "failed quota: team: must specify limits.cpu for: a; requests.memory for: a",
			},
		},
		"not all is stated, in the event of a view": {
			`refused pods "a": failed quota: team: must specify limits.cpu for: a; state it in the object, or let a LimitRange give it`,
			Words{
				Reason: quotav1.ReasonRequestIncomplete, Quota: "team", Missing: "limits.cpu for: a",
				Text: "failed quota: team: must specify limits.cpu for: a",
			},
		},
		"not counted": {
			"status unknown for quota: team, resources: pods,requests.cpu (usage is still being counted: try again in a moment)",
			Words{
				Reason: quotav1.ReasonUsageUnknown, Quota: "team",
				Text: "status unknown for quota: team, resources: pods,requests.cpu (usage is still being counted: try again in a moment)",
			},
		},
		"limited by default": {
			`Error creating: admission webhook "x" denied the request: insufficient quota to consume: pods`,
			Words{Reason: NotCovered, Text: "insufficient quota to consume: pods"},
		},
		"of a LimitRange": {
			`Error creating: pods "a" is forbidden: [maximum cpu usage per Container is 100m, but limit is 250m]`,
			Words{Reason: RefusedElsewhere, Text: `pods "a" is forbidden: [maximum cpu usage per Container is 100m, but limit is 250m]`},
		},
		"of another webhook": {
			`(combined from similar events): Error creating: admission webhook "policy.example" denied the request: exceeded quota: it says`,
			Words{Reason: RefusedElsewhere, Text: `admission webhook "policy.example" denied the request: exceeded quota: it says`},
		},
		"cut off after what was requested": {
			"Error creating: exceeded quota: team, requested: pods=1,requests.memory=1Gi, used: pods=1,requests.mem",
			Words{
				Reason: quotav1.ReasonQuotaExceeded, Quota: "team", Requested: amounts("pods", "1", "requests.memory", "1Gi"),
				Text: "exceeded quota: team, requested: pods=1,requests.memory=1Gi, used: pods=1,requests.mem",
			},
		},
		"cut off in what was requested": {
			"exceeded quota: team, requested: pods=1,requests.mem",
			Words{Reason: quotav1.ReasonQuotaExceeded, Quota: "team", Text: "exceeded quota: team, requested: pods=1,requests.mem"},
		},
		"cut off in the quota's name": {"exceeded quota: te", Words{Reason: RefusedElsewhere, Text: "exceeded quota: te"}},
		"of scopes that no quota has": {
			`pods "a" is forbidden: insufficient quota to match these scopes: [{PriorityClass In [high]}]`,
			Words{Reason: NotCovered, Text: "insufficient quota to match these scopes: [{PriorityClass In [high]}]"},
		},
		"of another webhook that speaks of quota": {
			`Error creating: admission webhook "billing.example" denied the request: insufficient quota to run a GPU`,
			Words{Reason: RefusedElsewhere, Text: `admission webhook "billing.example" denied the request: insufficient quota to run a GPU`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, ParseRefusal(test.message)); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

// FuzzParseRefusal: for any message, there is a reason and a text, and the text of a quota's words says the same again.
func FuzzParseRefusal(f *testing.F) {
	for _, seed := range []string{
		"", "exceeded quota: a, requested: pods=1, used: pods=1, limited: pods=1", "exceeded quota: a, requested: =, used: =",
		"failed quota: a: must specify b", "status unknown for quota: a, resources: b", "insufficient quota to consume: x",
		"too much in doubt for quota: a, requested: b=1, held for missing objects: b=1, allowed for missing objects: b=1 (c)",
		"create Pod x failed error: ", "exceeded quota: a, requested: pods=1,, used: pods=1,", "exceeded quota: a, requested: pods=1, used: po",
		"insufficient quota to match these scopes: [x]",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message string) {
		words := ParseRefusal(message)
		if words.Reason == "" || words.Text == "" && strings.TrimSpace(message) != "" && words.Reason != RefusedElsewhere {
			t.Fatalf("%q: %+v", message, words)
		}
		if words.Reason == RefusedElsewhere {
			if words.Quota != "" || words.Requested != nil {
				t.Fatalf("%q: no quota refused, and yet: %+v", message, words)
			}
			return
		}
		again := ParseRefusal(words.Text)
		if again.Reason != words.Reason || again.Quota != words.Quota || len(again.Requested) != len(words.Requested) {
			t.Fatalf("%q says %+v, and its text %+v", message, words, again)
		}
	})
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func event(kind, name, reason, message string, secondsAgo, count int32) corev1.Event {
	last := metav1.NewTime(noon.Add(-time.Duration(secondsAgo) * time.Second))
	return corev1.Event{
		InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name}, Reason: reason, Message: message, Count: count,
		FirstTimestamp: metav1.NewTime(last.Add(-time.Minute)), LastTimestamp: last,
	}
}

const (
	byTeam  = `Error creating: admission webhook "x" denied the request: exceeded quota: team, requested: pods=1, used: pods=3, limited: pods=3`
	byTeam2 = `Error creating: admission webhook "x" denied the request: exceeded quota: team, requested: pods=1, used: pods=2, limited: pods=2`
)

func TestRefusedOf(t *testing.T) {
	failing := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u"}, Status: appsv1.ReplicaSetStatus{
		Conditions: []appsv1.ReplicaSetCondition{{
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Message: byTeam,
			LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour)),
		}},
	}}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Status: appsv1.DeploymentStatus{
		Conditions: []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ReplicaSetCreateError",
			Message:        `Failed to create new replica set "web-1": exceeded quota: team, requested: count/replicasets.apps=1, used: count/replicasets.apps=3, limited: count/replicasets.apps=3`,
			LastUpdateTime: metav1.NewTime(noon),
		}},
	}}
	foreign := event("ReplicaSet", "web", "FailedCreate", byTeam, 1, 1)
	foreign.InvolvedObject.UID = "another"
	type refusal struct {
		Reason, Quota string
		Ago, Over     time.Duration
		Count         int32
	}
	for name, test := range map[string]struct {
		object client.Object
		kind   string
		events []corev1.Event
		since  time.Time
		want   []refusal
	}{
		"nothing is refused": {object: &appsv1.ReplicaSet{}, kind: "ReplicaSet"},
		"a condition alone":  {object: failing, kind: "ReplicaSet", want: []refusal{{quotav1.ReasonQuotaExceeded, "team", time.Hour, 0, 0}}},
		"events know more than the condition, and go together": {
			object: failing, kind: "ReplicaSet",
			events: []corev1.Event{
				event("ReplicaSet", "web", "FailedCreate", byTeam2, 30, 4), event("ReplicaSet", "web", "FailedCreate", byTeam, 10, 3),
				event("ReplicaSet", "web", "SuccessfulCreate", byTeam, 1, 3), event("ReplicaSet", "other", "FailedCreate", byTeam, 1, 3), foreign,
			},
			want: []refusal{{quotav1.ReasonQuotaExceeded, "team", 10 * time.Second, 80 * time.Second, 7}},
		},
		"of several refusers, the latest comes first": {
			object: &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, kind: "StatefulSet",
			events: []corev1.Event{
				event("StatefulSet", "web", "FailedCreate", byTeam, 30, 0),
				event("StatefulSet", "web", "FailedCreate", `Error creating: pods "web-a" is forbidden: violates PodSecurity`, 20, 1),
				event("StatefulSet", "web", "FailedCreate", `Error creating: pods "web-b" is forbidden: violates PodSecurity`, 10, 1),
			},
			want: []refusal{
				{RefusedElsewhere, "", 10 * time.Second, 70 * time.Second, 2}, {quotav1.ReasonQuotaExceeded, "team", 30 * time.Second, time.Minute, 1},
			},
		},
		"events that are older than what was made since say nothing": {
			object: &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, kind: "StatefulSet", since: noon.Add(-20 * time.Second),
			events: []corev1.Event{event("StatefulSet", "web", "FailedCreate", byTeam, 30, 9)},
		},
		"a condition that still holds speaks for events that are too old": {
			object: failing, kind: "ReplicaSet", since: noon.Add(-20 * time.Second),
			events: []corev1.Event{event("ReplicaSet", "web", "FailedCreate", byTeam, 30, 9)},
			want:   []refusal{{quotav1.ReasonQuotaExceeded, "team", time.Hour, 0, 0}},
		},
		"a Deployment without a ReplicaSet": {object: deployment, kind: "Deployment", want: []refusal{{quotav1.ReasonQuotaExceeded, "team", 0, 0, 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []refusal
			for _, refused := range RefusedOf(test.object, test.kind, test.events, test.since) {
				got = append(got, refusal{refused.Reason, refused.Quota, noon.Sub(refused.Last), refused.Last.Sub(refused.First), refused.Count})
			}
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func TestRefusedByName(t *testing.T) {
	for name, test := range map[string]struct {
		resource, object, message string
		want                      int
	}{
		"in the event of a view": {"pods", "web-6", `refused pods "web-6": ` + byTeam, 1},
		"of another object":      {"pods", "web-6", `refused pods "web-66": ` + byTeam, 0},
		"in Kubernetes' words":   {"services", "front", `services "front" is forbidden: ` + byTeam, 1},
		"a pod of a StatefulSet": {"pods", "web-0", "create Pod web-0 in StatefulSet web failed error: " + byTeam, 1},
		"a claim of a StatefulSet": {
			"persistentvolumeclaims", "data-web-0", "create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: " + byTeam, 1,
		},
		"a Job, with its group": {
			"jobs.batch", "nightly-1", `Error creating job: jobs.batch "nightly-1" is forbidden: exceeded quota: own, requested: count/jobs.batch=1, ` +
				"used: count/jobs.batch=1, limited: count/jobs.batch=1", 1,
		},
		"a pod of a StatefulSet, asked about a service of its name": {"services", "web-0", "create Pod web-0 in StatefulSet web failed error: " + byTeam, 0},
		"of a claim, asked about the pod":                           {"pods", "web-0", "create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: " + byTeam, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := RefusedByName(schema.ParseGroupResource(test.resource), test.object, []corev1.Event{event("Any", "any", "Any", test.message, 1, 1)})
			if len(got) != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
