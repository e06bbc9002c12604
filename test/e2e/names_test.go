// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// The API server bounds the names of some objects, such as Roles, by nothing but what its
// store takes.
var _ = Describe("An object with a name of 400 KiB", func() {
	const roles = "count/roles.rbac.authorization.k8s.io"

	It("is counted like others, and takes no more of the ledger", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard(roles, "1").Hard("pods", "5"))
		namespace := team.namespace(ctx)
		ledger := func(ctx context.Context) *quotav1.QuotaLedger {
			ledger := &quotav1.QuotaLedger{}
			Expect(api.Get(ctx, client.ObjectKeyFromObject(quota), ledger)).To(Succeed())
			return ledger
		}
		long := builders.Role(namespace, strings.Repeat("r", 400<<10))
		mustCreate(ctx, long)
		text, err := json.Marshal(ledger(ctx))
		Expect(err).NotTo(HaveOccurred())
		Expect(len(text)).To(BeNumerically("<", 5000))
		Expect(api.Create(ctx, builders.Pod(namespace, "p1").Obj())).To(Succeed(), "what others create goes on")
		Expect(api.Create(ctx, builders.Role(namespace, strings.Repeat("s", 400<<10)))).
			To(BeRefused(exceeded(quota.Name, roles, "1", "1", "1")))
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			entries := ledger(ctx).Entries
			used := entries.Used[roles]
			g.Expect(used.Value()).To(BeEquivalentTo(1))
			g.Expect(entries.Reservations).To(BeEmpty())
		}).Should(Succeed())
		Expect(api.DeleteAllOf(ctx, long, client.InNamespace(namespace))).To(Succeed())
		Eventually(ctx, api.Create).WithArguments(builders.Role(namespace, "short"), client.DryRunAll).Should(Succeed())
	})
})
