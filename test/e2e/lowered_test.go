// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/faults/proxy"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// These specs have two replicas of their own. The suite's operator is away meanwhile.
var _ = Describe("A limit that is lowered", longest, Ordered, ContinueOnFailure, func() {
	// The first API server asks the leader, and the second one the other replica.
	var servers [2]client.Client
	var leader, other *proxy.Proxy
	BeforeAll(func(ctx SpecContext) {
		away(running.Stop)
		balancer := startBalancer()
		certificate, err := cluster.Certificate()
		Expect(err).NotTo(HaveOccurred())
		options := harness.OperatorOptions{
			Binary: settings.Binary, LeaderElect: true, WebhookURL: balancer.URL(), CertDir: certificate,
			Args: []string{"--status-interval", "100ms", "--reservation-ttl", reservationTTL.String()},
		}
		leader, options.Kubeconfig = startProxy()
		first := startAtOnce(ctx, balancer, options, 1)[0].WebhookPort
		Eventually(ctx, tryInvalidQuota).Should(MatchError(ContainSubstring("must be an integer")))
		other, options.Kubeconfig = startProxy()
		second, err := cluster.StartOperator(ctx, options)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(second.Stop)
		balancer.SetBackends(first, second.WebhookPort)
		balancer.Drain(first) // The first API server keeps its connection.
		server, config, err := cluster.StartAPIServer(ctx)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(server.Stop)
		servers = [2]client.Client{api, suite.Client(config, deadline)}
	})
	hold := func(held bool) {
		leader.HoldWatches(held)
		other.HoldWatches(held)
	}

	DescribeTable("binds from the moment that the edit is answered", func(ctx SpecContext, held bool) {
		const rounds = 30
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "6").Hard(nobodys, "0"))
		DeferCleanup(hold, false)
		namespace := team.namespace(ctx)
		Eventually(ctx, createByBoth[*corev1.Secret]).WithArguments(servers, builders.Secret(namespace, "probe"), client.DryRunAll).
			Should(BeRefused(exceeded(quota.Name, nobodys, "1", "0", "0")))
		for _, name := range []string{"p1", "p2", "p3"} {
			mustCreate(ctx, builders.Pod(namespace, name).Obj())
		}
		late := builders.Pod(namespace, "late").Generated().Obj()
		turns := 0
		for round := range rounds {
			Eventually(ctx, createByBoth[*corev1.Pod]).WithArguments(servers, late, client.DryRunAll).Should(Succeed(), "seen by both")
			before := restingWrites(ctx, other)
			hold(held)
			limitPods(ctx, servers[round%2], quota, "3")
			if other.Writes() > before {
				turns++
			}
			Expect(createByBoth(ctx, servers, late)).To(BeRefused(exceeded(quota.Name, "pods", "1", "3", "3")), "round %d", round)
			hold(false)
			limitPods(ctx, servers[round%2], quota, "6")
		}
		Expect(turns).To(Equal(rounds/2), "every other edit is to be asked of the other replica, which writes it to the ledger")
	},
		Entry("while no replica has seen the edit", true),
		Entry("while replicas see the edit as soon as they can", false),
	)

	It("binds also if the quota has no ledger yet", func(ctx SpecContext) {
		team := newTeam()
		namespace := team.namespace(ctx)
		leader.Inject(proxy.Rates{proxy.Unavailable: 1})
		DeferCleanup(leader.Inject, proxy.Rates{})
		quota := createQuota(ctx, team.quota().Hard("pods", "6").Hard(nobodys, "0").Obj())
		DeferCleanup(hold, false)
		Eventually(ctx, createByBoth[*corev1.Secret]).WithArguments(servers, builders.Secret(namespace, "probe"), client.DryRunAll).
			Should(MatchError(ContainSubstring("status unknown for quota: " + quota.Name)))
		Expect(api.Get(ctx, client.ObjectKeyFromObject(quota), &quotav1.QuotaLedger{})).To(Satisfy(apierrors.IsNotFound))
		hold(true)
		limitPods(ctx, servers[1], quota, "3")
		leader.Inject(nil)
		for i := range 3 {
			Eventually(ctx, func(ctx context.Context) error {
				return servers[i%2].Create(ctx, builders.Pod(namespace, fmt.Sprintf("p%d", i)).Obj())
			}).Should(Succeed())
		}
		Expect(createByBoth(ctx, servers, builders.Pod(namespace, "late").Generated().Obj())).
			To(BeRefused(exceeded(quota.Name, "pods", "1", "3", "3")))
	})
})

// restingWrites returns how many writes of ledgers a replica has tried, once those of the edit
// before are over.
func restingWrites(ctx context.Context, replica *proxy.Proxy) int {
	GinkgoHelper()
	writes := 0
	Eventually(ctx, func() bool {
		before := writes
		writes = replica.Writes()
		return writes == before
	}).MustPassRepeatedly(5).Should(BeTrue())
	return writes
}

// createByBoth creates an object through both API servers at once, and returns what both
// answer.
func createByBoth[T interface {
	client.Object
	DeepCopy() T
}](ctx context.Context, servers [2]client.Client, object T, options ...client.CreateOption) error {
	var errs [2]error
	var group sync.WaitGroup
	for i, server := range servers {
		group.Go(func() { errs[i] = server.Create(ctx, object.DeepCopy(), options...) })
	}
	group.Wait()
	if first, second := fmt.Sprint(errs[0]), fmt.Sprint(errs[1]); first != second {
		return fmt.Errorf("the first API server answers %q, the second one %q", first, second)
	}
	return errs[0]
}

// limitPods edits one limit.
func limitPods(ctx context.Context, server client.Client, quota *quotav1.ClusterResourceQuota, limit string) {
	GinkgoHelper()
	patch := []byte(`{"spec":{"quota":{"hard":{"pods":"` + limit + `"}}}}`)
	Expect(server.Patch(ctx, quota, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
}

// startProxy starts what a replica reaches the API server through, and returns it with
// the kubeconfig that leads there.
func startProxy() (between *proxy.Proxy, kubeconfig string) {
	GinkgoHelper()
	between, err := proxy.Start(cluster.Config(), 1)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(between.Close)
	kubeconfig, err = cluster.WriteKubeconfig(unique("proxied"), between.Config())
	Expect(err).NotTo(HaveOccurred())
	return between, kubeconfig
}
