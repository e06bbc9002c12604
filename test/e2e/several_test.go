// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

var _ = Describe("Several quotas over one namespace", func() {
	It("are charged all, or none", func(ctx SpecContext) {
		team := newTeam()
		named := func(name string) *builders.QuotaBuilder {
			return builders.Quota(team.name+"-"+name).Label(teamLabel, team.name)
		}
		// By name, one comes before and one after the one that refuses.
		first := enforce(ctx, named("a").Hard("pods", "3").Hard("requests.cpu", "3"))
		tight := enforce(ctx, named("b").Hard("requests.memory", "100Mi"))
		last := enforce(ctx, named("c").Hard("pods", "3"))
		namespace := team.namespace(ctx)
		pod := func(name, memory string) *corev1.Pod {
			return builders.Pod(namespace, name).Request("cpu", "1").Request("memory", memory).Obj()
		}
		mustCreate(ctx, pod("p1", "60Mi"))
		eventuallyUses(ctx, first, "pods=1,requests.cpu=1")
		eventuallyUses(ctx, tight, "requests.memory=60Mi")
		eventuallyUses(ctx, last, "pods=1")

		for i := range 5 {
			Expect(api.Create(ctx, pod(fmt.Sprintf("big%d", i), "60Mi"))).To(
				BeRefused(exceeded(tight.Name, "requests.memory", "60Mi", "60Mi", "100Mi")))
		}
		for _, quota := range []*quotav1.ClusterResourceQuota{first, tight, last} {
			// That of p1 settles a moment after it was counted.
			Eventually(ctx, func(ctx context.Context) []string { return reservations(ctx, quota) }).Should(BeEmpty())
		}
		eventuallyUses(ctx, first, "pods=1,requests.cpu=1")
		eventuallyUses(ctx, tight, "requests.memory=60Mi")
		eventuallyUses(ctx, last, "pods=1")

		By("using what was not charged")
		mustCreate(ctx, pod("p2", "20Mi"))
		mustCreate(ctx, pod("p3", "20Mi"))
		Expect(api.Create(ctx, pod("p4", "0"))).To(BeRefused(
			"exceeded quota: " + first.Name + ", requested: pods=1,requests.cpu=1, used: pods=3,requests.cpu=3, limited: pods=3,requests.cpu=3"))
	})

	It("hold together under many requests at once", func(ctx SpecContext) {
		// A wide quota over both namespaces, and a narrow one over each.
		team := newTeam()
		const each = "each"
		namespaces := []string{team.nextName(), team.nextName()}
		for _, name := range namespaces {
			mustCreate(ctx, builders.Namespace(name).Label(teamLabel, team.name).Label(each, name).Obj())
		}
		wide := enforce(ctx, team.quota().Hard("pods", "9"))
		narrow := enforce(ctx, builders.Quota(team.name+"-narrow").Label(each, namespaces[0]).Hard("pods", "3"))
		var pods []*corev1.Pod
		for i := range 30 {
			pods = append(pods, builders.Pod(namespaces[i%2], fmt.Sprintf("p%d", i)).Obj())
		}

		admitted := map[string]int{}
		for _, result := range createAtOnce(ctx, pods) {
			if result.err == nil {
				admitted[result.pod.Namespace]++
				continue
			}
			Expect(result.err).To(Or(
				BeRefused(exceeded(wide.Name, "pods", "1", "9", "9")),
				BeRefused(exceeded(narrow.Name, "pods", "1", "3", "3"))))
		}
		Expect(admitted[namespaces[0]]).To(BeNumerically("<=", 3))
		// On a machine that is busy, what a request holds that the narrow quota then refuses is
		// given back after others were refused. It is free from then on.
		all := admitted[namespaces[0]] + admitted[namespaces[1]]
		AddReportEntry("admitted at once", all)
		Expect(all).To(BeNumerically("<=", 9))
		for i := all; i < 9; i++ {
			Eventually(ctx, func(ctx context.Context) error {
				return api.Create(ctx, builders.Pod(namespaces[1], fmt.Sprintf("later-%d", i)).Obj())
			}).WithTimeout(10 * time.Second).Should(Succeed())
		}
		Expect(api.Create(ctx, builders.Pod(namespaces[1], "more").Obj())).To(BeRefused(exceeded(wide.Name, "pods", "1", "9", "9")))
		eventuallyUses(ctx, wide, "pods=9")
		eventuallyUses(ctx, narrow, fmt.Sprintf("pods=%d", admitted[namespaces[0]]))
	})
})

// reservations returns what the ledger of a quota holds in flight.
func reservations(ctx context.Context, quota client.Object) []string {
	GinkgoHelper()
	ledger := &quotav1.QuotaLedger{}
	Expect(api.Get(ctx, client.ObjectKeyFromObject(quota), ledger)).To(Succeed())
	return ledger.Entries.Reservations
}
