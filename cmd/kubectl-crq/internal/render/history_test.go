// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

func peaks(day, week, month string) quotav1.PeakHistory {
	return quotav1.PeakHistory{
		Day: resource.MustParse(day), Week: resource.MustParse(week), Month: resource.MustParse(month), At: ago(86400),
	}
}

// remembered is payments with a history, and a trial of something that it doesn't limit.
func remembered() *quotav1.ClusterResourceQuota {
	quota := payments()
	quota.Spec.Trial.Hard = list("secrets", "10")
	quota.Status.HistorySince = ptr.To(ago(20 * 86400))
	quota.Status.History = []quotav1.ResourceHistory{
		{Resource: "pods", Peak: peaks("43", "50", "52"), Trend: "---012468+",
			Refused: &quotav1.RefusalHistory{Day: 1, Week: 3, Month: 12, Shortfall: resource.MustParse("2")}},
		{Resource: "requests.cpu", Peak: peaks("2500m", "17", "17"), Trend: "----112372"},
		{Resource: "requests.memory", Peak: peaks("1536Mi", "1536Mi", "2Gi")}, // without a trend
		{Resource: "secrets", Peak: peaks("1", "1", "1"), Trend: "---------1"},
		{Resource: "services.loadbalancers", Peak: peaks("0", "0", "0"), Trend: "-x00000000"},
	}
	return quota
}

func TestHistory(t *testing.T) {
	quotas := []quotav1.ClusterResourceQuota{*remembered(), *fresh()}
	for name, style := range styles {
		t.Run(name, func(t *testing.T) {
			style.Blocks = style.Width > 0
			wantGolden(t, "history-"+name, History(quotas, TopOptions{Style: style}, now))
		})
	}
	t.Run("what is fullest first", func(t *testing.T) {
		wantGolden(t, "history-usage", History(quotas, TopOptions{ByUsage: true}, now))
	})
}

func TestRecommendText(t *testing.T) {
	amount := func(text string) *resource.Quantity { return ptr.To(resource.MustParse(text)) }
	of := func() *Recommend {
		return &Recommend{Quotas: []Recommendation{
			{Quota: "payments", Resources: []RecommendedLimit{
				{Resource: "pods", Recommended: amount("52"), Hard: amount("50"), Used: amount("40"), Peak: amount("50"), PeakAt: ptr.To(ago(86400)),
					Refused: 12, Change: Raise},
				{Resource: "requests.cpu", Recommended: amount("17"), Hard: amount("20"), Used: amount("2500m"), Peak: amount("17"),
					PeakAt: ptr.To(ago(3600)), Change: Lower},
				{Resource: corev1.ResourceName("services\x1b[2J"), Recommended: amount("0"), Hard: amount("2"), Used: amount("0"), Peak: amount("0"), Change: Unused},
			}, Notes: []string{"The history has 20 days, less than a month: what runs once a month may be missing.", "Nobody used services in 20 days."}},
			{Quota: "fresh", Resources: []RecommendedLimit{{Resource: "pods", Hard: amount("4"), Change: NotKnown}},
				Notes: []string{"There is no history yet, so nothing is recommended."}},
		}}
	}
	for name, style := range styles {
		t.Run(name, func(t *testing.T) { wantGolden(t, "recommend-"+name, RecommendText(of(), style)) })
	}
}
