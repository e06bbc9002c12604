// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package quotas

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

func in(mode quotav1.EnforcementMode, quota *quotav1.ClusterResourceQuota) *quotav1.ClusterResourceQuota {
	quota.Spec.Enforcement.Mode = mode
	return quota
}

// An edit that enforces a limit lowers it.
func TestLoweredLimitsOfModes(t *testing.T) {
	const deny, warn, audit = quotav1.EnforcementDeny, quotav1.EnforcementWarn, quotav1.EnforcementAudit
	edition := func(hard ...string) *quotav1.ClusterResourceQuota { return edition(3, hard...) }
	for name, test := range map[string]struct {
		previous, current *quotav1.ClusterResourceQuota
		want              corev1.ResourceList
	}{
		"from Audit to Deny":                        {previous: in(audit, edition("pods", "3")), current: in(deny, edition("pods", "3")), want: quotaOf("pods", "3")},
		"from Warn to nothing, which is Deny":       {previous: in(warn, edition("pods", "3")), current: edition("pods", "3"), want: quotaOf("pods", "3")},
		"to a higher limit that is enforced":        {previous: in(audit, edition("pods", "3")), current: edition("pods", "9"), want: quotaOf("pods", "9")},
		"from Deny to Audit":                        {previous: edition("pods", "3"), current: in(audit, edition("pods", "3"))},
		"from Audit to Deny without a limit":        {previous: in(audit, edition("pods", "3", "services", "1")), current: edition("pods", "3"), want: quotaOf("pods", "3")},
		"to Audit with a lower limit":               {previous: edition("pods", "3"), current: in(audit, edition("pods", "1"))},
		"from Warn to Audit":                        {previous: in(warn, edition("pods", "3")), current: in(audit, edition("pods", "1"))},
		"a lower limit that only advises":           {previous: in(warn, edition("pods", "3")), current: in(warn, edition("pods", "1"))},
		"a mode that isn't known enforces":          {previous: in(audit, edition("pods", "3")), current: in("Dream", edition("pods", "3")), want: quotaOf("pods", "3")},
		"what was of such a mode was enforced then": {previous: in("Dream", edition("pods", "3")), current: in(deny, edition("pods", "3"))},
	} {
		t.Run(name, func(t *testing.T) {
			got := loweredLimits(test.previous, test.current).Hard
			if diff := cmp.Diff(corev1.ResourceList{}, got); test.want == nil && diff != "" {
				t.Errorf("want nothing lowered (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want, got); test.want != nil && diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

// A quota was enforced, isn't, and is again: a fence of the first time binds by the stored limits.
func TestAFenceFollowsTheModes(t *testing.T) {
	store := &ledgers{state: ledger.State{Basis: ledger.Basis{Quota: "u"}}}
	fences := NewFences(clocktesting.NewFakeClock(time.Unix(0, 0)), store, time.Minute)
	ctx := admission.NewContextWithRequest(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{}})
	const deny, audit = quotav1.EnforcementDeny, quotav1.EnforcementAudit
	editions := []*quotav1.ClusterResourceQuota{
		in(audit, edition(3, "pods", "3", "services", "1")),
		in(deny, edition(4, "pods", "3", "services", "1")),
		in(audit, edition(5, "pods", "3", "services", "1")),
		in(deny, edition(6, "pods", "9", "services", "1")),
	}
	want := []ledger.Fence{
		{Generation: 4, Hard: quotaOf("pods", "3", "services", "1"), Until: time.Unix(60, 0)},
		{Generation: 4, Hard: quotaOf("pods", "3", "services", "1"), Until: time.Unix(60, 0)}, // nothing is lowered
		{Generation: 6, Hard: quotaOf("pods", "9", "services", "1"), Until: time.Unix(61, 0)}, // later than any before
	}
	for i, want := range want {
		if err := fences.impose(ctx, editions[i], editions[i+1]); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, store.state.Fence); diff != "" {
			t.Errorf("edit %d, fence (-want,+got):\n%s", i, diff)
		}
	}
}
