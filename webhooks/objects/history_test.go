// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/history"
)

func TestWhatDoesNotFitIsRememberedAndCounted(t *testing.T) {
	quota := func(mode quotav1.EnforcementMode, trial corev1.ResourceList, hard ...string) *quotav1.ClusterResourceQuota {
		quota := quotaOf("team", hard...)
		quota.Spec.Enforcement.Mode, quota.Spec.Trial.Hard = mode, trial
		return quota
	}
	for name, test := range map[string]struct {
		quota   *quotav1.ClusterResourceQuota
		request *admissionv1.AdmissionRequest
		// seen is what is remembered, and counted the series of would_refuse_total.
		seen    string
		counted []string
	}{
		"it fits":      {quota: quota("", nil, "pods", "1"), request: creation()},
		"it is denied": {quota: quota("", nil, "pods", "0"), request: creation(), seen: "pods: 1 need 1"},
		"it is admitted with a warning": {
			quota: quota(quotav1.EnforcementWarn, nil, "pods", "0", "requests.cpu", "100m"), request: creation(),
			seen: "pods: 1 need 1; requests.cpu: 1 need 250m", counted: []string{"Warn team pods 1", "Warn team requests.cpu 1"},
		},
		"it doesn't say how much": {
			quota: quota(quotav1.EnforcementAudit, nil, "limits.cpu", "1"), request: creation(),
			seen: "limits.cpu: 1", counted: []string{"Audit team limits.cpu 1"},
		},
		"a trial would refuse it": {
			quota: quota("", list("pods", "0"), "pods", "1"), request: creation(), seen: "trial of pods: 1 need 1",
			counted: []string{"Trial team pods 1"},
		},
		"it isn't for good": {
			quota:   quota(quotav1.EnforcementWarn, list("pods", "0"), "pods", "0"),
			request: but(creation(), func(request *admissionv1.AdmissionRequest) { request.DryRun = ptr.To(true) }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, quotas(test.quota), func(t *testing.T, served *served) {
				recorder := history.New("here")
				served.handler.History = recorder
				served.handle(t.Context(), test.request)
				summary := recorder.Summary(now(), "team", test.quota.UID, test.quota.Spec.Trial.Hard)
				var seen []string
				for _, name := range []corev1.ResourceName{"limits.cpu", "pods", "requests.cpu"} {
					if of := summary.Resources[name]; of.Requests[history.Today] > 0 {
						seen = append(seen, strings.TrimSuffix(fmt.Sprintf("%s: %d need %s", name, of.Requests[history.Today], of.Need), " need <nil>"))
					}
					if of := summary.Trial[name]; of.Requests > 0 {
						seen = append(seen, fmt.Sprintf("trial of %s: %d need %s", name, of.Requests, of.Need))
					}
				}
				if diff := cmp.Diff(test.seen, strings.Join(seen, "; ")); diff != "" {
					t.Errorf("remembered (-want,+got):\n%s", diff)
				}
				if diff := cmp.Diff(test.counted, served.wouldRefuse(t)); diff != "" {
					t.Errorf("counted (-want,+got):\n%s", diff)
				}
				served.metrics.Forget("team")
				if left := served.wouldRefuse(t); len(left) > 0 {
					t.Errorf("a quota that was deleted has %v", left)
				}
			})
		})
	}
}

// wouldRefuse returns the series of requests that would have been refused.
func (s *served) wouldRefuse(t *testing.T) []string {
	t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, family := range families {
		if family.GetName() != "sharedquota_admission_would_refuse_total" {
			continue
		}
		for _, series := range family.GetMetric() {
			var labels []string
			for _, label := range series.GetLabel() {
				labels = append(labels, label.GetValue())
			}
			all = append(all, fmt.Sprintf("%s %v", strings.Join(labels, " "), series.GetCounter().GetValue()))
		}
	}
	return all
}
