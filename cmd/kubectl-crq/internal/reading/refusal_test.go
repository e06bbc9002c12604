// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
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
		"of Kubernetes": {`Error creating: pods "web-7x" is forbidden: ` + exceeded, of},
		"of a StatefulSet": {
			`create Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden: ` + exceeded, of,
		},
		"in the event of a view": {
			`refused pods "web-6": ` + exceeded + "; used is what all namespaces that share the quota use: delete unneeded objects", of,
		},
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

// FuzzParseRefusal: whatever the message, there is a reason and a text, and the text of a quota's words says the same
// again.
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
