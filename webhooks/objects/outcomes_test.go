// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

func TestWhichRefusalsAreTold(t *testing.T) {
	const exceeded = "exceeded quota: team, requested: pods=1, used: pods=0, limited: pods=0"
	pods := []corev1.ResourceName{"pods"}
	refused := func(reason string, resources []corev1.ResourceName, message string) []outcomes.Refusal {
		return []outcomes.Refusal{{
			Quota: "team", Namespace: "shop", Kind: "pods", Name: "web", Reason: reason, Resources: resources, Message: message,
		}}
	}
	for name, test := range map[string]struct {
		hard    []string
		change  func(*served)
		request *admissionv1.AdmissionRequest
		want    []outcomes.Refusal
	}{
		"a request that doesn't fit": {
			hard: []string{"pods", "0"}, request: creation(), want: refused("QuotaExceeded", pods, exceeded),
		},
		"a request that doesn't say enough": {
			hard: []string{"limits.cpu", "1"}, request: creation(),
			want: refused("RequestIncomplete", nil, "failed quota: team: must specify limits.cpu for: c"),
		},
		"a request whose quota isn't counted": {
			hard: []string{"pods", "1"}, request: creation(), change: func(s *served) { s.store.forget("team") },
			want: refused("UsageUnknown", pods, "status unknown for quota: team, resources: pods "+
				"(usage is still being counted: try again in a moment; if it stays so, ask your cluster administrator to look at the quota's condition Ready)"),
		},
		"no dry run":                      {hard: []string{"pods", "0"}, request: dryRun(creation())},
		"no granted request":              {hard: []string{"pods", "1"}, request: creation()},
		"no request that can't be judged": {hard: []string{"pods", "1"}, request: in("nowhere", creation())},
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, quotas(quotaOf("team", test.hard...)), func(t *testing.T, served *served) {
				if test.change != nil {
					test.change(served)
				}
				served.handle(t.Context(), test.request)
				if diff := cmp.Diff(test.want, served.told.refusals); diff != "" {
					t.Errorf("told (-want,+got):\n%s", diff)
				}
			})
		})
	}
}
