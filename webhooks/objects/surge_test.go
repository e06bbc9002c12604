// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// surging gives a quota surge.
func surging(quota *quotav1.ClusterResourceQuota, surge ...string) *quotav1.ClusterResourceQuota {
	quota.Spec.Surge.Hard = list(surge...)
	return quota
}

func TestSurgeIsForPodsThatReplaceOthers(t *testing.T) {
	const full = "exceeded quota: team, requested: pods=1, used: pods=0, limited: pods=0"
	byHand := func(request *admissionv1.AdmissionRequest) { request.UserInfo.Username = "ivy" }
	for name, test := range map[string]struct {
		quotas []*quotav1.ClusterResourceQuota
		cpu    string
		change func(*admissionv1.AdmissionRequest)
		broken bool
		// message is that of a refusal; empty if the pod is admitted.
		message string
		looks   lookups
	}{
		"it doesn't fit otherwise": {quotas: quotas(surging(quotaOf("team", "pods", "0"), "pods", "1")), looks: lookups{replaces: 1}},
		"there is room":            {quotas: quotas(surging(quotaOf("team", "pods", "1"), "pods", "1"))},
		"there is no surge":        {quotas: quotas(quotaOf("team", "pods", "0")), message: full},
		"of another resource alone": {
			quotas: quotas(surging(quotaOf("team", "pods", "0", "requests.cpu", "1"), "requests.cpu", "1")), message: full,
		},
		"made by hand": {quotas: quotas(surging(quotaOf("team", "pods", "0"), "pods", "1")), change: byHand, message: full},
		"larger": {
			quotas: quotas(surging(quotaOf("team", "pods", "0"), "pods", "1")), cpu: "2", looks: lookups{others: 1},
			message: full + " (the pod takes more than the one that it replaces, or has other claims, so it gets no surge: free some room, or ask for no more than before)",
		},
		"surge is too small": {
			quotas: quotas(surging(quotaOf("team", "requests.cpu", "0"), "requests.cpu", "100m")), looks: lookups{replaces: 1},
			message: "exceeded quota: team, requested: requests.cpu=500m, used: requests.cpu=0, limited: requests.cpu=0 " +
				"(this replaces another pod, and doesn't fit in the surge for that either, which is requests.cpu=100m: " +
				"wait until other rollouts have ended, or ask your cluster administrator for more spec.surge)",
		},
		"another quota has none": {
			quotas: quotas(surging(quotaOf("a", "pods", "0"), "pods", "1"), quotaOf("team", "pods", "0")), looks: lookups{replaces: 1}, message: full,
		},
		"it isn't known": {
			quotas: quotas(surging(quotaOf("team", "pods", "0"), "pods", "1")), broken: true, looks: lookups{unknown: 1},
			message: full + " (the operator couldn't find out whether the pod replaces another one and so gets surge: " +
				"reading ReplicaSet web-2: broken: try again in a moment)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, test.quotas, func(t *testing.T, served *served) {
				if test.cpu == "" {
					test.cpu = "500m"
				}
				objects, after := rollout()
				replacements, typed, told := replacing(t, objects...)
				if test.broken {
					typed.PrependReactor("get", "replicasets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("broken") })
				}
				served.handler.Replacements = replacements
				request := creationOf(t, of(podOfApp("web-2-a", test.cpu), "new", after, "ReplicaSet"), "replicaset-controller")
				if test.change != nil {
					test.change(request)
				}
				got := served.handle(t.Context(), request)
				if said := got.Result.Message; got.Allowed != (test.message == "") || said != test.message {
					t.Errorf("allowed %v: %s\nwant %s", got.Allowed, said, test.message)
				}
				if *told != test.looks {
					t.Errorf("looks %+v, want %+v", *told, test.looks)
				}
			})
		})
	}
}

// A quota that only audits says nothing of a pod that it would admit.
func TestARemarkIsNotMadeOfAPodThatWouldTakeSurge(t *testing.T) {
	for controller, want := range map[string]string{"replicaset-controller": "", "job-controller": "exceeded quota: team"} {
		audits := quotas(mode(audit, surging(quotaOf("team", "pods", "0"), "pods", "1")), mode(audit, surging(quotaOf("other", "pods", "0"), "pods", "1")))
		serve(t, audits, func(t *testing.T, served *served) {
			objects, after := rollout()
			replacements, _, told := replacing(t, objects...)
			served.handler.Replacements = replacements
			got := served.handle(t.Context(), creationOf(t, of(podOfApp("web-2-a", "500m"), "new", after, "ReplicaSet"), controller))
			said := got.AuditAnnotations["would-refuse"]
			if !got.Allowed || (said == "") != (want == "") || !strings.Contains(said, want) {
				t.Errorf("%s: allowed %v: %q, want %q", controller, got.Allowed, said, want)
			}
			if looks := told.replaces + told.others; looks != map[string]int{"replicaset-controller": 1}[controller] {
				t.Errorf("%s: %d looks", controller, looks)
			}
		})
	}
}
