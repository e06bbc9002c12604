// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

var _ = Describe("The peaks of a quota", func() {
	peaks := func(quota *quotav1.ClusterResourceQuota) func(context.Context) string {
		return func(ctx context.Context) string { return peaksOf(mustGetQuota(ctx, quota)) }
	}

	It("outlive their leader, and begin anew with another quota of that name", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "3").Hard("services", "5"))
		namespace := team.namespace(ctx)
		for i := range 3 {
			mustCreate(ctx, builders.Pod(namespace, fmt.Sprintf("p%d", i)).Obj())
		}
		Expect(api.Create(ctx, builders.Pod(namespace, "more").Obj())).To(BeRefused(exceeded(quota.Name, "pods", "1", "3", "3")))
		eventuallyUses(ctx, quota, "pods=3,services=0")
		for i := range 2 {
			mustDelete(ctx, builders.Pod(namespace, fmt.Sprintf("p%d", i)).Obj())
		}
		eventuallyUses(ctx, quota, "pods=1,services=0")
		const want = "pods 3/3/3, services 0/0/0"
		Expect(peaks(quota)(ctx)).To(Equal(want))
		for range 2 {
			restart(ctx)
			Consistently(ctx, peaks(quota)).WithTimeout(2 * time.Second).Should(Equal(want))
		}

		By("lowering the limit to below the peak, and not to below what is used")
		Expect(kubectlPatch(ctx, quota, `{"spec":{"quota":{"hard":{"pods":"2"}}}}`)).To(ContainSubstring("below the peak of the last 30 days (pods: 3/2)"))

		By("limiting something else for a while")
		change(ctx, quota, func(spec *spec) { delete(spec.Quota.Hard, "pods") })
		Eventually(ctx, peaks(quota)).Should(Equal("services 0/0/0"))
		change(ctx, quota, hard("pods", "9"))
		Eventually(ctx, peaks(quota)).Should(Equal("pods 1/1/1, services 0/0/0"))

		mustDelete(ctx, builders.Pod(namespace, "p2").Obj())
		eventuallyUses(ctx, quota, "pods=0,services=0")
		Expect(peaks(quota)(ctx)).To(Equal("pods 1/1/1, services 0/0/0"))
		mustDelete(ctx, quota)
		again := mustCreate(ctx, team.quota().Hard("pods", "5").Obj())
		waitUntilEnforced(ctx, again)
		Eventually(ctx, peaks(again)).Should(Equal("pods 0/0/0"))
	})

	It("go on from those that the status has, of earlier days too", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "9"))
		Eventually(ctx, peaks(quota)).Should(Equal("pods 0/0/0"))
		before := func(days int, amount string) quotav1.Peak {
			return quotav1.Peak{Amount: resource.MustParse(amount), At: metav1.NewTime(time.Now().AddDate(0, 0, -days).Truncate(time.Second))}
		}
		Eventually(ctx, func(ctx context.Context) error {
			quota := mustGetQuota(ctx, quota)
			quota.Status.Peaks = []quotav1.ResourcePeaks{{
				Resource: "pods", Day: before(5, "4"), Week: before(10, "6"), Month: before(40, "8"), Others: []quotav1.Peak{before(15, "7"), before(3, "-1")},
			}}
			return api.Status().Update(ctx, quota)
		}).Should(Succeed())
		mustCreate(ctx, builders.Pod(team.namespace(ctx), "p").Obj())
		Eventually(ctx, peaks(quota)).Should(Equal("pods 1/4/7 +6"))
	})
})

// peaksOf puts what a status says into one line.
func peaksOf(quota *quotav1.ClusterResourceQuota) string {
	lines := make([]string, 0, len(quota.Status.Peaks))
	for i := range quota.Status.Peaks {
		of := &quota.Status.Peaks[i]
		line := fmt.Sprintf("%s %s/%s/%s", of.Resource, of.Day.Amount.String(), of.Week.Amount.String(), of.Month.Amount.String())
		for _, other := range of.Others {
			line += " +" + other.Amount.String()
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, ", ")
}
