// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

// admitting are the quotas, which admit requests while they can't be decided.
func admitting(quotas ...Quota) []Quota {
	quotas = slices.Clone(quotas)
	for i := range quotas {
		quotas[i].Admits = true
	}
	return quotas
}

// policies lists for each entry that enforces the limits of its quotas, and the action without an answer.
func policies(webhooks []admissionregistrationv1.ValidatingWebhook) map[string]admissionregistrationv1.FailurePolicyType {
	policies := map[string]admissionregistrationv1.FailurePolicyType{}
	for _, webhook := range webhooks {
		if IsOfObjects(webhook) {
			policies[metav1.FormatLabelSelector(webhook.NamespaceSelector)] = *webhook.FailurePolicy
		}
	}
	return policies
}

func TestAnEntryAdmitsIfAllItsQuotasDo(t *testing.T) {
	const (
		refused, passed = admissionregistrationv1.Fail, admissionregistrationv1.Ignore
		names           = "kubernetes.io/metadata.name notin (kube-system,operator)"
		shop            = names + ",team in (shop)"
		elsewhere       = names + ",team notin (shop)"
	)
	refusing, admits := teamQuota("shop", pods), admitting(teamQuota("shop", services))[0]
	admits.UID = "admits"
	idle := teamQuota("shop")
	idle.UID = "idle"
	for name, test := range map[string]struct {
		flag       admissionregistrationv1.FailurePolicyType
		everywhere []schema.GroupResource
		quotas     []Quota
		want       map[string]admissionregistrationv1.FailurePolicyType
	}{
		"one that refuses, with any flag": {
			flag: passed, quotas: []Quota{refusing}, want: map[string]admissionregistrationv1.FailurePolicyType{shop: refused},
		},
		"one that refuses, and limits nothing that is asked about": {
			quotas: []Quota{admits, idle}, want: map[string]admissionregistrationv1.FailurePolicyType{shop: passed},
		},
		"where all are asked about, as the flag says: refused": {
			everywhere: []schema.GroupResource{services}, quotas: []Quota{admits},
			want: map[string]admissionregistrationv1.FailurePolicyType{shop: refused, elsewhere: refused},
		},
		"where all are asked about, as the flag says: admitted": {
			flag: passed, everywhere: []schema.GroupResource{services}, quotas: []Quota{admits},
			want: map[string]admissionregistrationv1.FailurePolicyType{shop: passed, elsewhere: passed},
		},
		"where all are asked about, a quota that refuses": {
			flag: passed, everywhere: []schema.GroupResource{services}, quotas: []Quota{refusing},
			want: map[string]admissionregistrationv1.FailurePolicyType{shop: refused, elsewhere: passed},
		},
	} {
		t.Run(name, func(t *testing.T) {
			settings := testSettings()
			if test.flag != "" {
				settings.FailurePolicy = test.flag
			}
			settings.Everywhere = test.everywhere
			webhooks, _ := settings.Webhooks(test.quotas)
			if diff := cmp.Diff(test.want, policies(webhooks)); diff != "" {
				t.Errorf("policies (-want,+got):\n%s", diff)
			}
			if got := *webhooks[0].FailurePolicy; got != settings.FailurePolicy {
				t.Errorf("the entry for quotas: got %s", got)
			}
			for i, question := range settings.asked(t, webhooks) {
				if want := ptr.Deref(webhooks[i+1].FailurePolicy, "") == passed; question.Admits != want {
					t.Errorf("%s says that it admits: %t", webhooks[i+1].Name, question.Admits)
				}
			}
		})
	}
}

// A namespace never meets an entry that lets requests pass if a quota selects it that refuses them, and an entry refuses
// only for the sake of such a quota.
func TestAnEntryFailsClosedIfAndOnlyIfSomeQuotaOfItRefuses(t *testing.T) {
	outcomes := map[admissionregistrationv1.FailurePolicyType]int{}
	rapid.Check(t, func(t *rapid.T) {
		settings := testSettings()
		quotas := anyQuotas().Draw(t, "quotas")
		for i := range quotas {
			quotas[i].Admits = rapid.Bool().Draw(t, "admits")
		}
		webhooks, exact := settings.Webhooks(quotas)
		configuration := configured(webhooks, exact)
		for _, webhook := range webhooks[1:] {
			outcomes[*webhook.FailurePolicy]++
			selector, err := metav1.LabelSelectorAsSelector(webhook.NamespaceSelector)
			if err != nil {
				t.Fatal(err)
			}
			refuses := false
			for _, namespace := range namespaces() {
				if !selector.Matches(labels.Set(namespace[0])) {
					continue
				}
				refuses = refuses || slices.ContainsFunc(quotas, func(quota Quota) bool {
					return !quota.Admits && len(ruled(quota.Limited)) > 0 && quota.Selector.Labels().Matches(labels.Set(namespace[0]))
				})
			}
			if refuses != (*webhook.FailurePolicy == admissionregistrationv1.Fail) {
				t.Fatalf("%s: some quota refuses: %t, policy %s", metav1.FormatLabelSelector(webhook.NamespaceSelector), refuses, *webhook.FailurePolicy)
			}
		}
		for _, quota := range quotas {
			if quota.Version = 1; settings.Coverage(configuration, quota) == Missing {
				t.Fatalf("%+v isn't covered by what was made of it", quota)
			}
		}
	})
	if outcomes[admissionregistrationv1.Fail] == 0 || outcomes[admissionregistrationv1.Ignore] == 0 {
		t.Errorf("want both policies, got %v", outcomes)
	}
}
