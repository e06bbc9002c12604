// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

var _ = Describe("A dry run", func() {
	It("is judged, and reserves nothing", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "1"))
		namespace := team.namespace(ctx)
		for range 5 {
			Expect(api.Create(ctx, builders.Pod(namespace, "p1").Obj(), client.DryRunAll)).To(Succeed())
			Expect(reservations(ctx, quota)).To(BeEmpty())
		}
		mustCreate(ctx, builders.Pod(namespace, "p1").Obj())
		Expect(api.Create(ctx, builders.Pod(namespace, "p2").Obj(), client.DryRunAll)).To(
			BeRefused(exceeded(quota.Name, "pods", "1", "1", "1")))
		eventuallyUses(ctx, quota, "pods=1")
	})
})

var _ = Describe("A deployment", func() {
	It("gets as many pods as the quota leaves, and the rest when there is room", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "3").Hard("count/deployments.apps", "1"))
		namespace := team.namespace(ctx)
		mustCreate(ctx, builders.Deployment(namespace, "web", 5))
		eventuallyUses(ctx, quota, "count/deployments.apps=1,pods=3")
		Expect(podsOf(ctx, []string{namespace})).To(HaveLen(3))

		change(ctx, quota, hard("pods", "5"))
		eventuallyUses(ctx, quota, "count/deployments.apps=1,pods=5")
		Expect(podsOf(ctx, []string{namespace})).To(HaveLen(5))
	})
})

var _ = Describe("An object that is refused by the API server after it was admitted", func() {
	// At most one of them could have come to be: they are charged as one, until
	// the reservation's life is over.
	It("because its name is taken is charged once, however often it is tried", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("configmaps", "100"))
		namespace := team.namespace(ctx)
		mustCreate(ctx, builders.ConfigMap(namespace, "taken"))
		eventuallyUses(ctx, quota, "configmaps=1")
		for range 3 {
			Expect(apierrors.IsAlreadyExists(api.Create(ctx, builders.ConfigMap(namespace, "taken")))).To(BeTrue())
		}
		mustCreate(ctx, builders.ConfigMap(namespace, "other"))
		Eventually(ctx, func(ctx context.Context) string {
			current := &quotav1.ClusterResourceQuota{}
			Expect(api.Get(ctx, client.ObjectKeyFromObject(quota), current)).To(Succeed())
			return amounts(current.Status.Total.Used) + " " + amounts(current.Status.Reserved)
		}).Should(Equal("configmaps=2 configmaps=1"))
	})

	It("because its name is taken holds none of the last room", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("configmaps", "3"))
		namespace, other := team.namespace(ctx), team.namespace(ctx)
		for _, name := range []string{"taken1", "taken2"} {
			mustCreate(ctx, builders.ConfigMap(namespace, name))
		}
		eventuallyUses(ctx, quota, "configmaps=2")
		before := reservations(ctx, quota) // those of the creations above, perhaps
		for _, name := range []string{"taken1", "taken2"} {
			err := api.Create(ctx, builders.ConfigMap(namespace, name))
			Expect(apierrors.IsAlreadyExists(err)).To(BeTrue(), "got %v", err)
			Expect(err).To(MatchError(fmt.Sprintf(`admission webhook %q denied the request: configmaps %q already exists`,
				"objects.quota.sharedquota.dev", name)))
		}
		Expect(before).To(ContainElements(reservations(ctx, quota)))
		mustCreate(ctx, builders.ConfigMap(other, "last"))
	})
})

var _ = Describe("A quota that is deleted", func() {
	It("takes its views and its ledger along, and lifts the limit", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "1"))
		namespaces := []string{team.namespace(ctx), team.namespace(ctx)}
		mustCreate(ctx, builders.Pod(namespaces[0], "p1").Obj())
		eventuallyUses(ctx, quota, "pods=1")
		Expect(api.Create(ctx, builders.Pod(namespaces[1], "p1").Obj())).To(BeRefused(exceeded(quota.Name, "pods", "1", "1", "1")))
		for _, namespace := range namespaces {
			Eventually(ctx, view(quota.Name, namespace)).Should(Not(BeNil()))
		}

		mustDelete(ctx, quota)
		// What the operator's cache still knows is asked again on the API server.
		mustCreate(ctx, builders.Pod(namespaces[1], "p1").Obj())
		for _, namespace := range namespaces {
			Eventually(ctx, view(quota.Name, namespace)).Should(BeNil())
		}
		Eventually(ctx, func(ctx context.Context) bool {
			return apierrors.IsNotFound(api.Get(ctx, client.ObjectKeyFromObject(quota), &quotav1.QuotaLedger{}))
		}).Should(BeTrue(), "the ledger is gone")
	})

	It("and created again under the same name starts clean", func(ctx SpecContext) {
		team, other := newTeam(), newTeam()
		first := enforce(ctx, team.quota().Hard("pods", "1").Hard("configmaps", "1"))
		namespace, elsewhere := team.namespace(ctx), other.namespace(ctx)
		mustCreate(ctx, builders.Pod(namespace, "p1").Obj())
		eventuallyUses(ctx, first, "configmaps=0,pods=1")
		for range 5 {
			mustDelete(ctx, first)
			// At once, for other namespaces and with another limit.
			second := enforce(ctx, builders.Quota(team.name).Label(teamLabel, other.name).Hard("pods", "2"))
			eventuallyUses(ctx, second, "pods=0")
			Expect(slice(ctx, second, namespace)).To(Equal("not selected"))
			Eventually(ctx, view(team.name, namespace)).Should(BeNil())
			Eventually(ctx, view(team.name, elsewhere)).Should(Not(BeNil()))
			mustCreate(ctx, builders.ConfigMap(namespace, unique("c")))

			mustDelete(ctx, second)
			first = enforce(ctx, team.quota().Hard("pods", "1"))
			eventuallyUses(ctx, first, "pods=1")
			Expect(api.Create(ctx, builders.Pod(namespace, "p2").Obj())).To(BeRefused(exceeded(team.name, "pods", "1", "1", "1")))
		}
	})
})
