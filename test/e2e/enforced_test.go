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
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

var _ = Describe("A quota that is Enforced", func() {
	It("is so from the very first request on", func(ctx SpecContext) {
		var longest time.Duration
		for range 30 {
			team := newTeam()
			namespace := team.namespace(ctx)
			began := time.Now()
			quota := createQuota(ctx, team.quota().Hard("pods", "0").Obj())
			awaitEnforced(ctx, quota)
			longest = max(longest, time.Since(began))
			Expect(api.Create(ctx, builders.Pod(namespace, "first").Obj())).To(
				BeRefused(exceeded(quota.Name, "pods", "1", "0", "0")), "quota %s", quota.Name)
		}
		AddReportEntry("from a quota's creation until it was enforced, at most", longest.Round(time.Millisecond))
	})

	It("stays so while others are created and deleted", func(ctx SpecContext) {
		team, other := newTeam(), newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "1"))
		versions := watchQuota(ctx, quota)
		for i := range 5 {
			one := createQuota(ctx, builders.Quota(fmt.Sprintf("%s-%d", other.name, i)).Label(teamLabel, other.name).Hard("pods", "0").Obj())
			awaitEnforced(ctx, one)
			mustDelete(ctx, one)
		}
		mustCreate(ctx, builders.Pod(team.namespace(ctx), "pod").Obj())
		for version := range versions {
			current, ok := version.Object.(*quotav1.ClusterResourceQuota)
			Expect(ok).To(BeTrue(), "%v", version)
			Expect(conditionOf(current, quotav1.ConditionEnforced)).To(HavePrefix("True"))
			if amounts(current.Status.Total.Used) == "pods=1" {
				return
			}
		}
		Fail("the watch has ended")
	})

	It("stays so when another operator takes over", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "1"))
		previous := configuration(ctx)
		versions := watchQuota(ctx, quota)
		restart(ctx)
		Eventually(ctx, func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(api.Create(ctx, builders.Pod(team.namespace(ctx), "pod").Obj()))
		}).Should(Succeed())
		for version := range versions {
			current, ok := version.Object.(*quotav1.ClusterResourceQuota)
			Expect(ok).To(BeTrue(), "%v", version)
			Expect(conditionOf(current, quotav1.ConditionEnforced)).To(HavePrefix("True"))
			if amounts(current.Status.Total.Used) == "pods=1" {
				break
			}
		}
		Expect(questions(configuration(ctx))).To(Equal(questions(previous)), "the epochs stay")
	})

	It("is not when the API server reaches no operator, and says why", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "1"))
		harmful := configuration(ctx).DeepCopy()
		harmful.Name, harmful.ResourceVersion, harmful.OwnerReferences = unique("harmful"), "", nil
		harmful.Webhooks = harmful.Webhooks[len(harmful.Webhooks)-1:]
		address := fmt.Sprintf("https://127.0.0.1:%d/", suite.FreePort())
		harmful.Webhooks[0].Name, harmful.Webhooks[0].ClientConfig.URL = "harmful.example.com", &address
		mustCreate(ctx, harmful)
		DeferCleanup(deleteIfThere, harmful)
		Eventually(ctx, func(ctx context.Context) string {
			return conditionOf(mustGetQuota(ctx, quota), quotav1.ConditionEnforced)
		}).WithTimeout(2 * deadline).Should(And(HavePrefix("False ProbeFailed: "),
			ContainSubstring(`failed calling webhook "harmful.example.com"`), ContainSubstring("connection refused")))
		mustDelete(ctx, harmful)
		waitUntilEnforced(ctx, quota)
		metrics := scrape(ctx)
		for _, outcome := range []string{"proved", "failed"} {
			probes := metrics.histogram("sharedquota_reach_probe_duration_seconds", "outcome", outcome)
			Expect(probes.GetSampleCount()).NotTo(BeZero(), outcome)
			AddReportEntry("a probe that "+outcome+" took, on average", fmt.Sprintf("%.1f ms of %d",
				1000*probes.GetSampleSum()/float64(probes.GetSampleCount()), probes.GetSampleCount()))
		}
	})
})

// questions are the paths of the entries that enforce.
func questions(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) []string {
	var paths []string
	for _, webhook := range enforcing(configuration) {
		paths = append(paths, *webhook.ClientConfig.URL)
	}
	return paths
}

// watchQuota returns the versions of a quota from now on.
func watchQuota(ctx context.Context, quota *quotav1.ClusterResourceQuota) <-chan watch.Event {
	GinkgoHelper()
	watching, stop := context.WithTimeout(ctx, 4*deadline)
	events, err := watcher.Watch(watching, &quotav1.ClusterResourceQuotaList{}, client.MatchingFields{"metadata.name": quota.Name})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { events.Stop(); stop() })
	return events.ResultChan()
}

// awaitEnforced returns the moment that the condition Enforced of the present spec is
// true, as "kubectl wait" does.
func awaitEnforced(ctx context.Context, quota *quotav1.ClusterResourceQuota) {
	GinkgoHelper()
	for version := range watchQuota(ctx, quota) {
		current, ok := version.Object.(*quotav1.ClusterResourceQuota)
		Expect(ok).To(BeTrue(), "%v", version)
		if strings.HasPrefix(conditionOf(current, quotav1.ConditionEnforced), "True") {
			return
		}
	}
	Fail("the watch has ended")
}
