// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

var _ = Describe("The metrics", longest, func() {
	DescribeTable("are for those who may read them",
		func(ctx SpecContext, token func() string, status int) {
			answer, _ := getMetrics(ctx, trustingTheWebhooks(ctx), token())
			Expect(answer).To(Equal(status))
		},
		Entry("who may", func() string { return mayScrape }, http.StatusOK),
		Entry("who may not", func() string { return mayNotScrape }, http.StatusForbidden),
		Entry("who says nothing", func() string { return "" }, http.StatusUnauthorized),
		// The library's answer to a token that the API server doesn't know.
		Entry("who lies", func() string { return "a.b.c" }, http.StatusInternalServerError),
	)

	It("tell of a quota what is so, and nothing once it is gone", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "3").Hard("requests.cpu", "2").Hard("configmaps", "1"))
		first, second := team.namespace(ctx), team.namespace(ctx)
		mustCreate(ctx, builders.Pod(first, "p1").Request("cpu", "250m").Obj())
		mustCreate(ctx, builders.Pod(first, "p2").Request("cpu", "1").Obj())
		mustCreate(ctx, builders.Pod(second, "p1").Request("cpu", "500m").Obj())
		eventuallyUses(ctx, quota, "configmaps=0,pods=3,requests.cpu=1750m")
		Expect(api.Create(ctx, builders.Pod(second, "p2").Request("cpu", "250m").Obj())).To(
			BeRefused(exceeded(quota.Name, "pods", "1", "3", "3")))

		// The status tells a reservation from what is used before the ledger is written.
		Eventually(ctx, func(ctx SpecContext) float64 {
			return scrape(ctx).value("sharedquota_ledger_reservations_ended_total", "quota", quota.Name, "end", "settled")
		}).Should(Equal(3.0))

		By("the figures")
		metrics := scrape(ctx)
		for series, want := range map[*series]float64{
			of("quota_hard", quota, "resource", "pods"):                                        3,
			of("quota_hard", quota, "resource", "requests.cpu"):                                2,
			of("quota_used", quota, "resource", "pods"):                                        3,
			of("quota_used", quota, "resource", "requests.cpu"):                                1.75,
			of("quota_used", quota, "resource", "configmaps"):                                  0,
			of("quota_reserved", quota, "resource", "pods"):                                    0,
			of("quota_namespace_used", quota, "namespace", first, "resource", "requests.cpu"):  1.25,
			of("quota_namespace_used", quota, "namespace", second, "resource", "pods"):         1,
			of("quota_namespace_used", quota, "namespace", second, "resource", "configmaps"):   0,
			of("quota_condition", quota, "type", quotav1.ConditionEnforced, "status", "True"):  1,
			of("quota_condition", quota, "type", quotav1.ConditionEnforced, "status", "False"): 0,
			of("quota_condition", quota, "type", quotav1.ConditionReady, "status", "True"):     1,
			of("ledger_reservations", quota):                                                   0,
			of("ledger_reservations_ended_total", quota, "end", "settled"):                     3,
			of("ledger_reservations_ended_total", quota, "end", "expired"):                     0,
			of("ledger_lost_total", quota, "how", "deleted"):                                   0,
			of("ledger_failures_total", quota):                                                 0,
			of("counting_leader", nil):                                                         1,
		} {
			Expect(metrics.value(series.name, series.labels...)).To(Equal(want), "%s%v", series.name, series.labels)
		}
		Expect(metrics.value("sharedquota_admission_requests_total", "outcome", "allowed")).To(BeNumerically(">=", 3))
		denials := metrics.histogram("sharedquota_admission_duration_seconds", "outcome", "denied")
		Expect(denials.GetSampleCount()).To(BeNumerically(">=", 1))
		Expect(denials.GetSampleSum()).To(BeNumerically(">", 0.1), "a denial waits for room")
		Expect(metrics.histogram("sharedquota_ledger_commit_batch_size").GetSampleCount()).To(BeNumerically(">=", 3))

		By("what is shown")
		Eventually(ctx, func(g Gomega, ctx SpecContext) {
			for _, projection := range []string{"status", "views"} {
				g.Expect(scrape(ctx).value("sharedquota_projection_lag_seconds", "quota", quota.Name, "projection", projection)).To(BeZero())
			}
		}).Should(Succeed())

		By("a ledger that somebody deletes")
		Expect(api.Delete(ctx, &quotav1.QuotaLedger{ObjectMeta: quota.ObjectMeta})).To(Succeed())
		Eventually(ctx, func(ctx SpecContext) float64 {
			return scrape(ctx).value("sharedquota_ledger_lost_total", "quota", quota.Name, "how", "deleted")
		}).Should(Equal(1.0))

		By("what isn't refused")
		lenient := builders.Quota(team.name+"-lenient").Label(teamLabel, team.name).Hard("secrets", "0").Obj()
		lenient.Spec.Enforcement.Mode = quotav1.EnforcementAudit
		waitUntilEnforced(ctx, createQuota(ctx, lenient))
		mustCreate(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: first, Name: "more"}})
		Eventually(ctx, func(g Gomega, ctx SpecContext) {
			g.Expect(scrape(ctx).value("sharedquota_admission_would_refuse_total",
				"quota", lenient.Name, "resource", "secrets", "mode", "Audit")).To(Equal(1.0))
		}).Should(Succeed())

		By("all that are documented, and no other")
		metrics = scrape(ctx)
		// The first takes a defect, the second a quota whose scopes match nothing, the third a request that failed.
		// Workloads that are woken may be another spec's; test/wake has their figures, and test/surge those of surge.
		elsewhere := []string{
			"sharedquota_owners_woken_total", "sharedquota_owners_refused_again_total", "sharedquota_owners_wake_failures_total",
			"sharedquota_quota_surge", "sharedquota_quota_surging_since_timestamp_seconds", "sharedquota_admission_replacement_lookups_total",
		}
		Expect(without(metrics.names(), elsewhere...)).To(ConsistOf(without(documented(), append(elsewhere, "sharedquota_counting_drift_total",
			"sharedquota_counting_unmatched_total", "sharedquota_ledger_doubtful_reservations")...)))
		problems, err := promlint.New(bytes.NewReader(metrics.text)).Lint()
		Expect(err).NotTo(HaveOccurred())
		for _, problem := range problems {
			Expect(problem.Metric).NotTo(HavePrefix("sharedquota_"), problem.Text)
		}

		mustDelete(ctx, quota)
		Eventually(ctx, func(ctx SpecContext) []string { return scrape(ctx).of(quota.Name) }).Should(BeEmpty())
		Consistently(ctx, func(ctx SpecContext) []string { return scrape(ctx).of(quota.Name) }).Should(BeEmpty())
	})

	It("tell of a reservation until it expires", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("configmaps", "100"))
		namespace := team.namespace(ctx)
		mustCreate(ctx, builders.ConfigMap(namespace, "taken"))
		eventuallyUses(ctx, quota, "configmaps=1")
		Expect(apierrors.IsAlreadyExists(api.Create(ctx, builders.ConfigMap(namespace, "taken")))).To(BeTrue())

		metrics := scrape(ctx)
		Expect(metrics.value("sharedquota_quota_reserved", "quota", quota.Name, "resource", "configmaps")).To(Equal(1.0))
		Expect(metrics.value("sharedquota_quota_used", "quota", quota.Name, "resource", "configmaps")).To(Equal(1.0))
		Expect(metrics.value("sharedquota_ledger_reservations", "quota", quota.Name)).To(Equal(1.0))
		Eventually(ctx, func(ctx SpecContext) float64 {
			return scrape(ctx).sum("sharedquota_ledger_doubtful_reservations", "quota", quota.Name, "namespace", namespace)
		}).Should(Equal(1.0))
		Eventually(ctx, func(ctx SpecContext) float64 {
			return scrape(ctx).value("sharedquota_ledger_reservations_ended_total", "quota", quota.Name, "end", "expired")
		}).WithTimeout(reservationTTL + deadline).WithPolling(10 * poll).Should(Equal(1.0))
		Expect(scrape(ctx).value("sharedquota_ledger_reservations", "quota", quota.Name)).To(BeZero())
	})
})

// series is one of a metric's.
type series struct {
	name   string
	labels []string
}

// of is a series that tells of a quota.
func of(name string, quota client.Object, labels ...string) *series {
	if quota != nil {
		labels = append(labels, "quota", quota.GetName())
	}
	return &series{name: "sharedquota_" + name, labels: labels}
}

// documented are the metrics that docs/metrics.md lists.
func documented() []string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(suite.RepositoryRoot(), "docs", "metrics.md"))
	Expect(err).NotTo(HaveOccurred())
	var names []string
	for line := range strings.Lines(string(text)) {
		if row, ok := strings.CutPrefix(line, "| `sharedquota_"); ok {
			name, _, _ := strings.Cut(row, "`")
			names = append(names, "sharedquota_"+name)
		}
	}
	Expect(names).NotTo(BeEmpty())
	return names
}

// trustingTheWebhooks is a client that trusts whom the API server trusts.
func trustingTheWebhooks(ctx context.Context) *http.Client {
	GinkgoHelper()
	return clientTrusting(configuration(ctx).Webhooks[0].ClientConfig.CABundle)
}
