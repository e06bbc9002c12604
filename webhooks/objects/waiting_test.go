// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/waiting"
)

// owned returns a request for a pod that the owner controls.
func owned(request *admissionv1.AdmissionRequest, version, kind, name string) *admissionv1.AdmissionRequest {
	owner := fmt.Sprintf(`"metadata":{"ownerReferences":[{"apiVersion":%q,"kind":%q,"name":%q,"uid":"uid of %s","controller":true}],`,
		version, kind, name, name)
	owner = strings.ReplaceAll(owner, "uid of ", "uid-of-")
	request.Object = raw(strings.Replace(string(request.Object.Raw), `"metadata":{`, owner, 1))
	return request
}

func TestWhoIsRememberedToWaitForRoom(t *testing.T) {
	full := func() []*quotav1.ClusterResourceQuota {
		return quotas(quotaOf("team", "pods", "0", "requests.cpu", "1"))
	}
	for name, test := range map[string]struct {
		quotas  []*quotav1.ClusterResourceQuota
		request *admissionv1.AdmissionRequest
		want    []string
	}{
		"the owner of a pod that doesn't fit": {
			quotas: full(), request: owned(creation(), "apps/v1", "ReplicaSet", "web"),
			want: []string{"team: ReplicaSet shop/web uid-of-web asks for pods=1,requests.cpu=250m and is short of pods=1"},
		},
		"for the quota that refuses": {
			quotas:  quotas(quotaOf("a", "pods", "5"), quotaOf("b", "requests.cpu", "100m")),
			request: owned(creation(), "batch/v1", "Job", "import"),
			want:    []string{"b: Job shop/import uid-of-import asks for requests.cpu=250m and is short of requests.cpu=150m"},
		},
		"no owner if the pod fits":                  {quotas: quotas(quotaOf("team", "pods", "1")), request: owned(creation(), "apps/v1", "ReplicaSet", "web")},
		"no owner if the pod has no controller":     {quotas: full(), request: creation()},
		"no owner that creates no pods":             {quotas: full(), request: owned(creation(), "v1", "ConfigMap", "web")},
		"no owner for a dry run":                    {quotas: full(), request: dryRun(owned(creation(), "apps/v1", "ReplicaSet", "web"))},
		"no owner of a pod that doesn't say enough": {quotas: quotas(quotaOf("team", "limits.cpu", "1")), request: owned(creation(), "apps/v1", "ReplicaSet", "web")},
		"no owner for an update, as its pod exists": {quotas: quotas(quotaOf("team", "requests.cpu", "149m")), request: owned(resize(), "apps/v1", "ReplicaSet", "web")},
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, test.quotas, func(t *testing.T, served *served) {
				list := served.wait()
				served.handle(t.Context(), test.request)
				var got []string
				for _, record := range list.All() {
					got = append(got, fmt.Sprintf("%s: %s %s/%s %s asks for %s and is short of %s", record.Quota, record.Kind,
						record.Namespace, record.Name, record.UID, amounts(record.Requested), amounts(record.Short)))
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("waiting (-want,+got):\n%s", diff)
				}
			})
		})
	}
}

func TestWhoIsGrantedAnObjectWaitsNoLonger(t *testing.T) {
	for name, test := range map[string]struct {
		quotas  []*quotav1.ClusterResourceQuota
		request *admissionv1.AdmissionRequest
		waits   bool
	}{
		"an owner":                              {quotas: quotas(quotaOf("team", "pods", "1")), request: owned(creation(), "apps/v1", "ReplicaSet", "web")},
		"also if no quota limits it any more":   {quotas: quotas(quotaOf("team", "services", "1")), request: owned(creation(), "apps/v1", "ReplicaSet", "web")},
		"not if another is granted one":         {quotas: quotas(quotaOf("team", "pods", "1")), request: owned(creation(), "apps/v1", "ReplicaSet", "api"), waits: true},
		"not if an ownerless pod is granted":    {quotas: quotas(quotaOf("team", "pods", "1")), request: creation(), waits: true},
		"not if it is granted for a dry run":    {quotas: quotas(quotaOf("team", "pods", "1")), request: dryRun(owned(creation(), "apps/v1", "ReplicaSet", "web")), waits: true},
		"not if it is refused for another need": {quotas: quotas(quotaOf("team", "limits.cpu", "1")), request: owned(creation(), "apps/v1", "ReplicaSet", "web"), waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, test.quotas, func(t *testing.T, served *served) {
				list := served.wait()
				list.Refused(now(), waiting.Refusal{
					Owner: waiting.Owner{Kind: waiting.ReplicaSet, Namespace: "shop", Name: "web", UID: "uid-of-web"}, Quota: "team",
				})
				pass := served.handler.Clock.After(1)
				<-pass
				served.handle(t.Context(), test.request)
				if waits := len(list.All()) > 0; waits != test.waits {
					t.Errorf("it waits: %t", waits)
				}
			})
		})
	}
}
