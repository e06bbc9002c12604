// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
)

// names is a list that reads well in tables.
func names(names ...corev1.ResourceName) []corev1.ResourceName { return names }

func TestResourcesThatUseWhatNamesLimit(t *testing.T) {
	type tracked map[schema.GroupResource][]corev1.ResourceName
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	for name, test := range map[string]struct {
		hard        []corev1.ResourceName
		want        tracked
		unlimitable []corev1.ResourceName
	}{
		"compute resources and pods are used by pods": {
			hard: names("requests.cpu", "pods", "limits.memory", "hugepages-2Mi", "ephemeral-storage"),
			want: tracked{pods(): names("ephemeral-storage", "hugepages-2Mi", "limits.memory", "pods", "requests.cpu")},
		},
		"storage is used by volume claims": {
			hard: names("requests.storage", "gold.storageclass.storage.k8s.io/requests.storage", "persistentvolumeclaims"),
			want: tracked{volumeClaims(): names("gold.storageclass.storage.k8s.io/requests.storage", "persistentvolumeclaims", "requests.storage")},
		},
		"ports are used by services": {
			hard: names("services.nodeports", "services.loadbalancers"),
			want: tracked{services(): names("services.loadbalancers", "services.nodeports")},
		},
		"an extended resource is used by pods, and by claims once a device class offers it": {
			hard: names("requests.vndr.example/gpu"),
			want: tracked{pods(): names("requests.vndr.example/gpu"), resourceClaims(): names("requests.vndr.example/gpu")},
		},
		"so is the implicit name of a device class": {
			hard: names("requests.deviceclass.resource.kubernetes.io/gpu"),
			want: tracked{
				pods():           names("requests.deviceclass.resource.kubernetes.io/gpu"),
				resourceClaims(): names("requests.deviceclass.resource.kubernetes.io/gpu"),
			},
		},
		"devices of a class are used by claims": {
			hard: names("gpu.deviceclass.resource.k8s.io/devices"),
			want: tracked{resourceClaims(): names("gpu.deviceclass.resource.k8s.io/devices")},
		},
		"a count is used by what it counts": {
			hard: names("count/deployments.apps", "count/pods", "count/widgets.example.com", "count/secrets"),
			want: tracked{
				deployments: names("count/deployments.apps"), pods(): names("count/pods"),
				{Group: "example.com", Resource: "widgets"}: names("count/widgets.example.com"),
				{Resource: "secrets"}:                       names("count/secrets"),
			},
		},
		"some counts have a second name": {
			hard: names("secrets", "count/secrets", "configmaps", "resourcequotas", "replicationcontrollers"),
			want: tracked{
				{Resource: "secrets"}: names("count/secrets", "secrets"), {Resource: "configmaps"}: names("configmaps"),
				{Resource: "resourcequotas"}: names("resourcequotas"), {Resource: "replicationcontrollers"}: names("replicationcontrollers"),
			},
		},
		"nothing uses these": {
			hard: names("storage", "count/events", "count/events.events.k8s.io", "vndr.example/gpu", "count/", "count/.apps", "count/a.",
				"limits.vndr.example/gpu", "deployments.apps", "requests.unknown.kubernetes.io/thing"),
			want: tracked{},
			unlimitable: names("count/", "count/.apps", "count/a.", "count/events", "count/events.events.k8s.io", "deployments.apps",
				"limits.vndr.example/gpu", "requests.unknown.kubernetes.io/thing", "storage", "vndr.example/gpu"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, unlimitable := newTestEvaluators().Resources(quotaOf("team", test.hard...).Spec.Hard)
			if diff := cmp.Diff(test.want, tracked(got)); diff != "" {
				t.Errorf("tracked (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(test.unlimitable, unlimitable); diff != "" {
				t.Errorf("unlimitable (-want,+got):\n%s", diff)
			}
		})
	}
}

// Resources names the resource of each charged object: nothing is used that isn't
// watched.
func TestEverythingThatIsChargedIsTracked(t *testing.T) {
	outcomes := tally{}
	rapid.Check(t, func(t *rapid.T) {
		evaluators := New(clockAt{now: testNow()}, anySources().Draw(t, "sources"))
		typed := anyTyped().Draw(t, "object")
		for _, limited := range limitableNames() {
			quota := quotaOf("team", limited)
			tracked, unlimitable := evaluators.Resources(quota.Spec.Hard)
			usage, err := evaluators.Usage(typed.resource, mustFootprint(t, evaluators, typed.resource, typed.object), quota, testNow())
			if err != nil {
				t.Fatal(err)
			}
			if len(usage) > 0 && (len(tracked[typed.resource]) == 0 || slices.Contains(unlimitable, limited)) {
				t.Fatalf("%s uses %s, which is tracked as %v", typed.resource, limited, tracked)
			}
			if len(usage) > 0 {
				outcomes["used"]++
			}
		}
	})
	outcomes.require(t, 100, "used")
}
