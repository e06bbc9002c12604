// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

var _ = Describe("A release that meets ledgers of the release after the next", func() {
	It("refuses with what to do, keeps its hands off, and goes on where those left off once it is upgraded", func(ctx SpecContext) {
		begin(ctx, built.afterNext)
		t := newTeam(ctx, "skipping", "3")
		Expect(t.create(ctx, "p1")).To(Succeed())
		Eventually(ctx, t.used(ctx)).Should(Equal("1"))
		t.send(ctx, "letter", 3)

		beRefused := MatchError(ContainSubstring("ledger skipping has encoding 3, this operator knows up to 2: upgrade it"))
		release = built.now
		old := replicas.Add(ctx)
		newer := slices.Clone(replicas.Running[:2])
		tryP2 := func(ctx context.Context) error {
			return api.Create(ctx, builders.Pod(t.namespaces[0], "p2").Obj(), client.DryRunAll)
		}
		// An older API server would still ask the newer replicas on the connections that it has.
		if suite.IsSince(ctx, "1.37") {
			By("answering beside newer replicas")
			for _, replica := range newer {
				replicas.Terminate(replica) // The API server doesn't ask it any more; it runs on.
			}
			Eventually(ctx, tryP2).MustPassRepeatedly(10).Should(beRefused)
			Expect(t.create(ctx, "p2")).To(beRefused)
		}

		By("leading")
		for _, replica := range newer {
			replicas.Stop(replica)
		}
		// Nobody else can write it any more, and this release can't write encoding 3.
		before := t.ledger(ctx)
		Expect(before.Entries.Encoding).To(BeEquivalentTo(3))
		Eventually(ctx, suite.LogOf).WithArguments(old.Process).Should(MatchRegexp(`"controller":"usage".*ledger skipping has encoding 3`))
		Eventually(ctx, tryP2).Should(beRefused)
		Expect(t.create(ctx, "p2")).To(beRefused)
		Expect(t.ledger(ctx)).To(Equal(before))

		By("being upgraded")
		roll(ctx, built.next, func() {})
		suite.Create(ctx, api, builders.Pod(t.namespaces[0], "p2").Obj())
		Expect(t.create(ctx, "p3")).To(t.beFull("3", "3"))
		Eventually(ctx, t.used(ctx)).Should(Equal("2"))
		Expect(t.ledger(ctx).Entries.Encoding).To(BeEquivalentTo(2))
		Expect(t.ledger(ctx).Entries.Reservations).To(ConsistOf(ContainSubstring(inFlight(t, 2))))
	})
})

var _ = Describe("A release whose CRDs are a newer one's", func() {
	It("leaves alone what it doesn't know of a status", func(ctx SpecContext) {
		begin(ctx, built.now)
		t := newTeam(ctx, "served", "3")
		crd := &unstructured.Unstructured{}
		crd.SetAPIVersion("apiextensions.k8s.io/v1")
		crd.SetKind("CustomResourceDefinition")
		crd.SetName("clusterresourcequotas.quota.sharedquota.dev")
		Expect(api.Patch(ctx, crd, client.RawPatch(types.JSONPatchType, []byte(`[{"op": "add",
			"path": "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/newer", "value": {"type": "string"}}]`)))).To(Succeed())
		DeferCleanup(suite.Install, cluster)

		newer := func(ctx context.Context) string {
			quota := &unstructured.Unstructured{}
			quota.SetGroupVersionKind(quotav1.GroupVersion.WithKind("ClusterResourceQuota"))
			quota.SetName(t.name)
			Expect(api.Get(ctx, client.ObjectKeyFromObject(quota), quota)).To(Succeed())
			value, _, err := unstructured.NestedString(quota.Object, "status", "newer")
			Expect(err).NotTo(HaveOccurred())
			return value
		}
		Eventually(ctx, func(ctx context.Context) string {
			Expect(api.Status().Patch(ctx, builders.Quota(t.name).Obj(), suite.Merge(`{"status":{"newer":"kept"}}`))).To(Succeed())
			return newer(ctx)
		}).Should(Equal("kept"))

		Expect(t.create(ctx, "p1")).To(Succeed())
		Eventually(ctx, suite.Used(api, t.name, "pods")).Should(Equal("1"))
		Expect(newer(ctx)).To(Equal("kept"))
	})
})
