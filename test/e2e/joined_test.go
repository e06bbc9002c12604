// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/faults/proxy"
	"github.com/sharedquota/shared-quota-operator/test/harness"
)

// These specs have an operator of their own. The suite's is away meanwhile.
var _ = Describe("A namespace that joins", Ordered, ContinueOnFailure, func() {
	var leader *proxy.Proxy
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
		startAtOnce(ctx, balancer, options, 1)
		Eventually(ctx, tryInvalidQuota).Should(MatchError(ContainSubstring("must be an integer")))
	})

	// Each resource has a watch of its own, and none of them knows how far the others are.
	It("is granted nothing before what it brought is counted", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("count/secrets", "3"))
		stays := team.namespace(ctx)
		Eventually(ctx, api.Create).WithArguments(builders.Secret(stays, "probe"), client.DryRunAll).Should(Succeed())
		DeferCleanup(leader.HoldWatches, false)
		for round := range 3 {
			newcomer := mustCreate(ctx, builders.Namespace(team.nextName()).Obj())
			joins := newcomer.Name
			leader.HoldWatches(true, "secrets")
			for i := range 3 {
				mustCreate(ctx, builders.Secret(joins, fmt.Sprint("s", i)))
			}
			relabel(ctx, newcomer, map[string]string{teamLabel: team.name})
			// The API server asks about it a moment after it has answered the edit.
			Eventually(ctx, api.Create).WithArguments(builders.Secret(joins, "late"), client.DryRunAll).
				Should(MatchError(ContainSubstring("status unknown for quota: "+quota.Name)), "round %d", round)
			leader.HoldWatches(false)
			Eventually(ctx, func(ctx context.Context) error { return api.Create(ctx, builders.Secret(joins, "late")) }).
				Should(BeRefused(exceeded(quota.Name, "count/secrets", "1", "3", "3")))

			relabel(ctx, newcomer, nil)
			Eventually(ctx, api.Create).WithArguments(builders.Secret(stays, "probe"), client.DryRunAll).Should(Succeed())
		}
	})

	It("is granted its first object, one after the other, while others leave", func(ctx SpecContext) {
		const namespaces = 30
		team := newTeam()
		enforce(ctx, team.quota().Hard("count/secrets", "1k").Hard("pods", "1k").Hard("count/configmaps", "1k"))
		for range namespaces {
			name := team.namespace(ctx)
			Expect(api.Create(ctx, builders.Secret(name, "s"))).To(Succeed())
			relabel(ctx, mustGetNamespace(ctx, name), nil)
		}
	})
})
