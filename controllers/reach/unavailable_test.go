// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/reach"
)

// enforces edits how the quota is enforced, as the API server does it.
func (c *tokened) enforces(t *testing.T, generation int64, enforcement quotav1.Enforcement) {
	t.Helper()
	quota := &quotav1.ClusterResourceQuota{}
	if err := c.server.Get(t.Context(), client.ObjectKey{Name: "team"}, quota); err != nil {
		t.Fatal(err)
	}
	quota.Generation, quota.Spec.Enforcement = generation, enforcement
	if err := c.server.Update(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	c.reconciles(t)
	c.now.Step(cacheDelay)
}

func (c *tokened) wantPolicy(t *testing.T, want admissionregistrationv1.FailurePolicyType) {
	t.Helper()
	if got := *c.configuration(t).Webhooks[1].FailurePolicy; got != want {
		t.Errorf("the failure policy is %s, want %s", got, want)
	}
}

func (c *tokened) wantVerdict(t *testing.T, generation int64, want reach.Enforcement) {
	t.Helper()
	if got := c.proofs.Of("team", "uid", generation, c.now.Now()).Enforcement; got != want {
		t.Errorf("generation %d: got %v, want %v", generation, got, want)
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
		"the mode of one resource": {
			lenient: quotav1.Enforcement{Overrides: []quotav1.EnforcementOverride{{Resource: "pods", Mode: quotav1.EnforcementWarn}}},
			strict:  quotav1.Enforcement{Overrides: []quotav1.EnforcementOverride{{Resource: "pods", Mode: quotav1.EnforcementDeny}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newContested(t)
			c.loads(t)
			c.wantVerdict(t, 1, reach.Proved)
			for i, enforcement := range []quotav1.Enforcement{test.lenient, test.strict} {
				generation := int64(i + 2)
				c.enforces(t, generation, enforcement)
				c.wantPolicy(t, []admissionregistrationv1.FailurePolicyType{admissionregistrationv1.Ignore, admissionregistrationv1.Fail}[i])
				c.reconciles(t)
				c.wantVerdict(t, generation, reach.Unproved)
				c.loads(t)
				c.wantVerdict(t, generation, reach.Proved)
			}
			if c.writes != 2 || len(c.forgets.quotas) != 0 {
				t.Errorf("%d writes, and %v were forgotten", c.writes, c.forgets.quotas)
			}
		})
	}
}

// The quota doesn't say what happens, so another flag needs another entry, and another proof, of the same spec.
func TestALeaderWithAnotherFlagWritesTheEntriesAnew(t *testing.T) {
	c := newContested(t)
	for _, policy := range []admissionregistrationv1.FailurePolicyType{admissionregistrationv1.Ignore, admissionregistrationv1.Fail} {
		c.loads(t)
		c.restart()
		with := c.options.Settings
		c.options.Settings = func() reach.Settings {
			current := with()
			current.FailurePolicy = policy
			return current
		}
		c.reconciles(t)
		c.now.Step(cacheDelay)
		c.wantPolicy(t, policy)
		c.loads(t)
		c.wantVerdict(t, 1, reach.Proved)
	}
	if len(c.forgets.quotas) != 0 {
		t.Errorf("%v were forgotten", c.forgets.quotas)
	}
}

func TestAnEntryThatSomebodyClosesIsRepaired(t *testing.T) {
	c := newContested(t)
	c.enforces(t, 2, quotav1.Enforcement{Mode: quotav1.EnforcementAudit})
	c.edits(t, func(current *admissionregistrationv1.ValidatingWebhookConfiguration) {
		closed := admissionregistrationv1.Fail
		current.Webhooks[1].FailurePolicy = &closed
	})
	c.reconciles(t)
	c.wantPolicy(t, admissionregistrationv1.Ignore)
}
