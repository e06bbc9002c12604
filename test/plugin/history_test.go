// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// remember makes two quotas, one of them with a history of twenty days, where no operator writes another.
func remember(ctx context.Context, cluster *harness.Cluster) {
	GinkgoHelper()
	api := suite.Client(cluster.Config(), suite.Deadline)
	Expect(api.Create(ctx, builders.Quota("young").Label("team", "young").Hard("pods", "5").Obj())).To(Succeed())
	quota := builders.Quota("old").Label("team", "old").Hard("pods", "20").Hard("requests.memory", "16Gi").Hard("services", "2").Obj()
	Expect(api.Create(ctx, quota)).To(Succeed())
	peak := func(amount string) quotav1.PeakHistory {
		most := resource.MustParse(amount)
		at := time.Date(2026, 11, 20, 14, 5, 0, 0, time.UTC)
		return quotav1.PeakHistory{Day: most, Week: most, Month: most, At: metav1.NewTime(at)}
	}
	quota.Status.Total.Used = corev1.ResourceList{"pods": resource.MustParse("15"), "requests.memory": resource.MustParse("4Gi"), "services": resource.MustParse("0")}
	quota.Status.HistorySince = ptr.To(metav1.NewTime(time.Now().Add(-20*24*time.Hour - time.Hour)))
	quota.Status.History = []quotav1.ResourceHistory{
		{Resource: "pods", Peak: peak("20"), Trend: "---1246888",
			Refused: &quotav1.RefusalHistory{Day: 1, Week: 2, Month: 3, Shortfall: resource.MustParse("4")}},
		{Resource: "requests.memory", Peak: peak("11Gi"), Trend: "---1234566"},
		{Resource: "services", Peak: peak("0"), Trend: "---0000000"},
	}
	Expect(api.Status().Update(ctx, quota)).To(Succeed())
}

var _ = Describe("kubectl crq, of the last 30 days", Ordered, func() {
	var past *harness.Cluster

	as := func(ctx context.Context, args ...string) string {
		GinkgoHelper()
		return mustSucceed(crqAs(ctx, past.Kubeconfig(), args...))
	}

	BeforeAll(func(ctx SpecContext) {
		var err error
		past, err = harness.Start(ctx, harness.Options{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(past.Stop()).To(Succeed()) })
		remember(ctx, past)
	})

	It("shows the peaks and refusals", func(ctx SpecContext) {
		wantGolden("top-history", as(ctx, "top", "--history"))
	})

	It("recommends limits", func(ctx SpecContext) {
		wantGolden("recommend", as(ctx, "recommend"))
	})

	It("prints a patch that kubectl takes", func(ctx SpecContext) {
		text := as(ctx, "recommend", "old", "-o", "yaml")
		wantGolden("recommend-patch", text)
		path := filepath.Join(GinkgoT().TempDir(), "patch.yaml")
		Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
		patch := []string{"patch", "crq", "old", "--type", "merge", "--patch-file", path}
		mustSucceed(kubectl(ctx, past.Kubeconfig(), nil, append(patch, "--dry-run=server")...))
		Expect(mustSucceed(kubectl(ctx, past.Kubeconfig(), nil, append(patch, "--dry-run=server", "-o", "jsonpath={.spec.quota.hard}")...))).
			To(MatchJSON(`{"pods":"24","requests.memory":"11Gi","services":"2"}`))
	})

	It("prints the data for programs", func(ctx SpecContext) {
		var found struct {
			Kind   string `json:"kind"`
			Quotas []struct {
				Quota      string `json:"quota"`
				Days       int    `json:"days"`
				Confidence string `json:"confidence"`
				Resources  []struct {
					Recommended string `json:"recommended"`
					Change      string `json:"change"`
				} `json:"resources"`
			} `json:"quotas"`
		}
		Expect(json.Unmarshal([]byte(as(ctx, "recommend", "-o", "json")), &found)).To(Succeed())
		Expect(found.Kind).To(Equal("Recommend"))
		Expect(found.Quotas).To(HaveLen(2))
		Expect(found.Quotas[0]).To(And(HaveField("Days", 20), HaveField("Confidence", "less than a month")))
		Expect(found.Quotas[0].Resources).To(HaveEach(HaveField("Recommended", Not(BeEmpty()))))
		Expect(found.Quotas[1]).To(And(HaveField("Quota", "young"), HaveField("Confidence", "none")))
	})

	It("wants the name of the quota that a patch is for", func(ctx SpecContext) {
		got := crqAs(ctx, past.Kubeconfig(), "recommend", "-o", "yaml")
		Expect(got.status).To(Equal(1))
		Expect(got.stderr).To(ContainSubstring("name the quota"))
	})

	It("completes quotas", func(ctx SpecContext) {
		Expect(as(ctx, "__complete", "recommend", "o")).To(Equal("old\n:4\n"))
	})
})
