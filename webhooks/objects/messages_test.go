// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

func list(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func TestMessagesWordForWord(t *testing.T) {
	for name, test := range map[string]struct{ got, want string }{
		"a quota is full": {
			got: exceededMessage(ledger.Denied{
				Quota: "team", Requested: list("pods", "1"), Used: list("pods", "10"), Limited: list("pods", "10"),
			}),
			want: "exceeded quota: team, requested: pods=1, used: pods=10, limited: pods=10",
		},
		"several amounts are sorted by name, in the words of their quantities": {
			got: exceededMessage(ledger.Denied{
				Quota:     "team",
				Requested: list("requests.memory", "1Gi", "limits.cpu", "1500m", "count/deployments.apps", "1"),
				Used:      list("requests.memory", "2048Mi", "limits.cpu", "2", "count/deployments.apps", "3"),
				Limited:   list("requests.memory", "2.5Gi", "limits.cpu", "3", "count/deployments.apps", "3"),
			}),
			want: "exceeded quota: team, requested: count/deployments.apps=1,limits.cpu=1500m,requests.memory=1Gi, " +
				"used: count/deployments.apps=3,limits.cpu=2,requests.memory=2Gi, " +
				"limited: count/deployments.apps=3,limits.cpu=3,requests.memory=2560Mi",
		},
		"a name comes before another name that it begins": {
			got: exceededMessage(ledger.Denied{
				Quota: "team", Requested: list("services.nodeports", "2", "services", "1"),
				Used: list("services.nodeports", "3", "services", "5"), Limited: list("services.nodeports", "4", "services", "5"),
			}),
			want: "exceeded quota: team, requested: services=1,services.nodeports=2, used: services=5,services.nodeports=3, " +
				"limited: services=5,services.nodeports=4",
		},
		"the namespace holds some of it": {
			got: missingMessage(list("pods", "2"), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
			want: " (of used, pods=2 is held until about 03:04:05 UTC for requests of the same namespace whose objects have not appeared: " +
				"if those requests failed, correct them, and try again after that time)",
		},
		"a namespace holds too much": {
			got: withheldMessage(ledger.Withheld{
				Quota: "team", Requested: list("pods", "1"), Held: list("pods", "5"), Limited: list("pods", "5"),
			}),
			want: "too much in doubt for quota: team, requested: pods=1, held for missing objects: pods=5, " +
				"allowed for missing objects: pods=5 (requests in this namespace were admitted and their objects don't appear: " +
				"find out what refuses these objects, such as another webhook or a policy, correct it, " +
				"and try again once their reservations have expired, by default after a minute)",
		},
		"usage isn't known yet": {
			got: unknownMessage(ledger.Undecided{
				Quota: "team", Reason: ledger.NotCounted, Resources: []corev1.ResourceName{"pods", "requests.cpu"},
			}),
			want: "status unknown for quota: team, resources: pods,requests.cpu (usage is still being counted: try again in a moment; " +
				"if it stays so, ask your cluster administrator to look at the quota's condition Ready)",
		},
		"too much is in flight": {
			got: unknownMessage(ledger.Undecided{
				Quota: "team", Reason: ledger.Full, Resources: []corev1.ResourceName{"pods"},
			}),
			want: "status unknown for quota: team, resources: pods (too many admitted objects of this quota are not counted yet: " +
				"try again in a moment; if it stays so, ask your cluster administrator to read the operator's log)",
		},
		"the namespace isn't counted yet": {
			got: unknownMessage(ledger.Undecided{
				Quota: "team", Reason: ledger.NotJoined, Resources: []corev1.ResourceName{"pods"},
			}),
			want: "status unknown for quota: team, resources: pods (the objects in a namespace that joined this quota are still being counted: " +
				"try again in a moment; if it stays so, ask your cluster administrator to look at the quota's condition Ready)",
		},
		"a namespace has changed": {
			got: unknownMessage(ledger.Undecided{
				Quota: "team", Reason: ledger.StaleNamespaces, Resources: []corev1.ResourceName{"pods"}, Members: 4711,
			}),
			want: "status unknown for quota: team, resources: pods (the labels of namespaces have just changed: try again in a moment)",
		},
		"the quota can't be enforced": {
			got: unknownMessage(ledger.Undecided{
				Quota: "payments", Reason: ledger.InvalidSpec, Resources: []corev1.ResourceName{"pods", "requests.cpu"},
				Detail: `spec.quota.hard[pods]: Invalid value: "-1": must be greater than or equal to 0`,
			}),
			want: "status unknown for quota: payments, resources: pods,requests.cpu (the quota's spec is not valid for this version of the operator: " +
				`spec.quota.hard[pods]: Invalid value: "-1": must be greater than or equal to 0; ` +
				"ask your cluster administrator to correct the quota's spec)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.got != test.want {
				t.Errorf("got  %s\nwant %s", test.got, test.want)
			}
		})
	}
}

// A warning that has a control character would be left out by the API server.
func TestAWarningIsOneLineOfBoundedLength(t *testing.T) {
	for text, want := range map[string]string{
		"fits":                         "fits",
		"context ended\nno\tright\x00": "context ended: no right ",
		strings.Repeat("long", webhookconfig.MaxWarning): strings.Repeat("long", webhookconfig.MaxWarning/4-1) + "l...",
	} {
		if got := shortened(text, webhookconfig.MaxWarning); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
