// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package production

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/faults/proxy"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

var _ = Describe("A namespace that joins", Ordered, ContinueOnFailure, func() {
	var leader *proxy.Proxy
	BeforeAll(func(ctx SpecContext) {
		leader = between()
		fresh(ctx, []string{"--status-interval=100ms"}, leader.Config())
	})

	joins := func(ctx context.Context, namespace, quota string) {
		GinkgoHelper()
		patch := suite.Merge(fmt.Sprintf(`{"metadata":{"labels":{"team":%q}}}`, quota))
		Expect(admin.Patch(ctx, builders.Namespace(namespace).Obj(), patch)).To(Succeed())
	}
	leaves := func(ctx context.Context, namespace string) {
		GinkgoHelper()
		Expect(admin.Patch(ctx, builders.Namespace(namespace).Obj(), suite.Merge(`{"metadata":{"labels":{"team":null}}}`))).To(Succeed())
	}

	// Each resource has a watch of its own, and none of them knows how far the others are.
	It("is granted nothing before what it brought is counted", func(ctx SpecContext) {
		const stays = "joined"
		limited(ctx, builders.Quota(stays).Hard("count/secrets", "3"))
		Eventually(ctx, admin.Create).WithArguments(builders.Secret(stays, "probe"), client.DryRunAll).Should(Succeed())
		DeferCleanup(leader.HoldWatches, false)
		for round := range 3 {
			newcomer := fmt.Sprint("newcomer-", round)
			suite.Create(ctx, admin, builders.Namespace(newcomer).Obj())
			leader.HoldWatches(true, "secrets")
			for i := range 3 {
				suite.Create(ctx, admin, builders.Secret(newcomer, fmt.Sprint("s", i)))
			}
			joins(ctx, newcomer, stays)
			// The API server asks about it a moment after it has answered the edit.
			Eventually(ctx, admin.Create).WithArguments(builders.Secret(newcomer, "late"), client.DryRunAll).
				Should(suite.BeUncounted(stays, "count/secrets"), "round %d", round)
			leader.HoldWatches(false)
			Eventually(ctx, func(ctx context.Context) error { return admin.Create(ctx, builders.Secret(newcomer, "late")) }).
				Should(suite.BeExceeded(stays, "count/secrets"))

			leaves(ctx, newcomer)
			Eventually(ctx, admin.Create).WithArguments(builders.Secret(stays, "probe"), client.DryRunAll).Should(Succeed())
		}
	})

	It("is granted its first object, one after the other, while others leave", func(ctx SpecContext) {
		const crowd, namespaces = "crowd", 30
		limited(ctx, builders.Quota(crowd).Hard("count/secrets", "1k").Hard("pods", "1k").Hard("count/configmaps", "1k"))
		for i := range namespaces {
			name := fmt.Sprintf("%s-%d", crowd, i)
			suite.Create(ctx, admin, builders.Namespace(name).Label("team", crowd).Obj())
			Expect(admin.Create(ctx, builders.Secret(name, "s"))).To(Succeed())
			leaves(ctx, name)
		}
	})
})
