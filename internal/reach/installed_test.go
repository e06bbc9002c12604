// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestAConfigurationShowsItsSettings(t *testing.T) {
	protected := []string{"kube-public", "kube-system", "operators"}
	for name, test := range map[string]struct {
		policy    admissionregistrationv1.FailurePolicyType
		quotas    []Quota
		protected []string
	}{
		"without a quota":          {policy: admissionregistrationv1.Ignore},
		"of one quota":             {policy: admissionregistrationv1.Fail, quotas: []Quota{labelled("a", "team", "a")}, protected: protected},
		"of several":               {policy: admissionregistrationv1.Ignore, quotas: []Quota{labelled("a", "team", "a"), labelled("b", "team", "b"), labelled("c", "tier", "c")}, protected: protected},
		"of one of named spaces":   {policy: admissionregistrationv1.Fail, quotas: []Quota{labelled("a", corev1.LabelMetadataName, "shop")}},
		"of one beside named ones": {policy: admissionregistrationv1.Fail, quotas: []Quota{labelled("a", corev1.LabelMetadataName, "shop"), labelled("b", "team", "b")}, protected: protected},
	} {
		t.Run(name, func(t *testing.T) {
			settings := Settings{Protected: protected, FailurePolicy: test.policy}
			webhooks, _ := settings.Webhooks(test.quotas)
			got, known := ReadSettings(&admissionregistrationv1.ValidatingWebhookConfiguration{Webhooks: webhooks})
			slices.Sort(got.Protected)
			if got.FailurePolicy != test.policy || known != (test.protected != nil) {
				t.Errorf("failure policy %s, protected known: %v", got.FailurePolicy, known)
			}
			if diff := cmp.Diff(test.protected, got.Protected); diff != "" {
				t.Errorf("protected (-want,+got):\n%s", diff)
			}
		})
	}
}

func labelled(name, key, value string) Quota {
	quota := teamQuota(name, pods)
	quota.Selector = selectorOf(map[string]string{key: value}, nil)
	return quota
}
