// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// enforces edits how the quota is enforced, as the API server does it.
func (b *bench) enforces(generation int64, enforcement quotav1.Enforcement) {
	b.t.Helper()
	quota := &quotav1.ClusterResourceQuota{}
	if err := b.server.Get(b.t.Context(), client.ObjectKey{Name: "team"}, quota); err != nil {
		b.t.Fatal(err)
	}
	quota.Generation, quota.Spec.Enforcement = generation, enforcement
	if err := b.server.Update(b.t.Context(), quota); err != nil {
		b.t.Fatal(err)
	}
	b.reconciles()
}

func (b *bench) wantPolicy(want admissionregistrationv1.FailurePolicyType) {
	b.t.Helper()
	if got := *b.configuration().Webhooks[objects].FailurePolicy; got != want {
		b.t.Errorf("the failure policy is %s, want %s", got, want)
	}
}

func (b *bench) wantVerdict(generation int64, want webhookconfig.Enforcement) {
	b.t.Helper()
	if got := b.proofs.Of("team", "uid", generation, bubble.Now()).Enforcement; got != want {
		b.t.Errorf("generation %d: got %v, want %v", generation, got, want)
	}
}

// Each edit has the entry written again, and the new spec counts as enforced once the API server has loaded that.
func TestAnEditOfWhatIsAdmittedWithoutAnAnswerIsProvedAnew(t *testing.T) {
	for name, test := range map[string]struct {
		lenient, strict quotav1.Enforcement
	}{
		"whenUnavailable": {
			lenient: quotav1.Enforcement{WhenUnavailable: quotav1.UnavailableAdmit}, strict: quotav1.Enforcement{WhenUnavailable: quotav1.UnavailableRefuse},
		},
		"the mode": {
			lenient: quotav1.Enforcement{Mode: quotav1.EnforcementAudit}, strict: quotav1.Enforcement{Mode: quotav1.EnforcementDeny},
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBench(t, func(t *testing.T, b *bench) {
				b.settles()
				b.wantVerdict(1, webhookconfig.Proved)
				b.forgets = nil
				for i, enforcement := range []quotav1.Enforcement{test.lenient, test.strict} {
					generation := int64(i + 2)
					b.enforces(generation, enforcement)
					b.wantPolicy([]admissionregistrationv1.FailurePolicyType{admissionregistrationv1.Ignore, admissionregistrationv1.Fail}[i])
					b.reconciles()
					b.wantVerdict(generation, webhookconfig.Unproved)
					b.settles()
					b.wantVerdict(generation, webhookconfig.Proved)
				}
				if b.writes != 3 || len(b.forgets) != 0 {
					t.Errorf("%d writes, and %v were forgotten", b.writes, b.forgets)
				}
			}, teamQuota())
		})
	}
}

// The quota leaves the action to the flag, so another flag needs another entry, and another proof, of the same spec.
func TestALeaderWithAnotherFlagWritesTheEntriesAnew(t *testing.T) {
	onBench(t, func(_ *testing.T, b *bench) {
		for _, b.policy = range []admissionregistrationv1.FailurePolicyType{admissionregistrationv1.Ignore, admissionregistrationv1.Fail} {
			b.restart()
			b.settles()
			b.wantPolicy(b.policy)
			b.wantVerdict(1, webhookconfig.Proved)
		}
	}, teamQuota())
}
