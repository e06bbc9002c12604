// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

func planned() *Plan {
	amount := func(text string) *resource.Quantity { return ptr.To(resource.MustParse(text)) }
	var many []string
	for i := range 13 {
		many = append(many, fmt.Sprintf("team-%d", i+1))
	}
	return &Plan{
		Result: PlanAbove,
		Quotas: []PlanQuota{
			{Quota: "payments", Change: PlanChanged, Selector: "team=payments", Scopes: "NotTerminating", NamespacesKnown: true,
				Namespaces: []string{"refunds", "shop"}, Joining: []string{"refunds"}, Leaving: []string{"books"}, WhenUnavailable: quotav1.UnavailableRefuse,
				Resources: []PlanResource{
					{Resource: "pods", Mode: quotav1.EnforcementDeny, Was: amount("20"), Hard: resource.MustParse("10"), Used: amount("15"),
						UsedFrom: FromStatus, Above: amount("5"), Peak: amount("18")},
					{Resource: "secrets", Mode: quotav1.EnforcementWarn, Hard: resource.MustParse("10"), UsedFrom: FromNowhere},
				},
				Remarks: []string{"pods: 5 more is used than the limit. What exists stays; requests for more are refused."}},
			{Quota: "all", Change: PlanNew, Selector: "tier", NamespacesKnown: true, Namespaces: many, Joining: many, WhenUnavailable: quotav1.UnavailableAdmit,
				Resources: []PlanResource{{Resource: "pods", Mode: quotav1.EnforcementAudit, Hard: resource.MustParse("10"), Used: amount("2"), UsedFrom: FromCount}}},
			{Quota: "blind", Change: PlanNew, Selector: "tier", WhenUnavailable: quotav1.UnavailableRefuse},
			{Quota: "none", Change: PlanUnchanged, Selector: "a=b", NamespacesKnown: true, WhenUnavailable: quotav1.UnavailableRefuse},
			{Quota: "one", Change: PlanUnchanged, Selector: "a=c", NamespacesKnown: true, Namespaces: []string{"c"}, WhenUnavailable: quotav1.UnavailableRefuse},
		},
		Webhook: PlanWebhook{EntriesNow: 1, EntriesThen: 3, Changes: []PlanAsked{
			{Namespaces: many, Newly: []string{"pods", "secrets"}, FailurePolicy: "Ignore"},
			{Namespaces: []string{"books"}, NoLonger: []string{"pods"}, Was: "Fail"},
			{Namespaces: []string{"shop"}, FailurePolicy: "Fail", Was: "Ignore"},
		}},
		Overlaps: []PlanOverlap{
			{Quota: "all", With: "payments", Namespaces: []string{"shop"}, Resources: []corev1.ResourceName{"pods", "secrets"}, Scoped: true},
			{Quota: "all", With: "one", Namespaces: many, Resources: []corev1.ResourceName{"pods"}},
		},
		Sums: []PlanSum{
			{Resource: "pods", Now: resource.MustParse("20"), Then: resource.MustParse("30"), Allocatable: amount("110")},
			{Resource: "requests.example.com/gpu", Now: resource.MustParse("0"), Then: resource.MustParse("3"), Allocatable: amount("0")},
		},
		Nodes: ptr.To(3),
		Notes: []string{"One.", "Two."},
	}
}

func TestPlanText(t *testing.T) {
	for name, style := range styles {
		t.Run(name, func(t *testing.T) { wantGolden(t, "plan-"+name, PlanText(planned(), style)) })
	}
	t.Run("nothing is above, and nodes can't be read", func(t *testing.T) {
		of := planned()
		of.Result, of.Quotas, of.Overlaps, of.Nodes, of.Notes = PlanFits, of.Quotas[4:], nil, nil, nil
		of.Webhook = PlanWebhook{EntriesNow: 1, EntriesThen: 1}
		of.Sums = []PlanSum{{Resource: "pods", Now: resource.MustParse("20"), Then: resource.MustParse("30")}}
		wantGolden(t, "plan-blind", PlanText(of, Style{}))
	})
	t.Run("it can't be told", func(t *testing.T) {
		wantGolden(t, "plan-unknown", PlanText(&Plan{Result: PlanUnknown}, Style{}))
	})
}
