// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

var _ = Describe("A release that meets ledgers of the release after the next", func() {
	It("refuses with what to do, keeps its hands off, and goes on where those left off once it is upgraded", func(ctx SpecContext) {
		install(ctx)
		replicas.start(ctx, built.afterNext)
		DeferCleanup(replicas.remove)
		t := newTeam(ctx, "skipping", "3")
		Expect(t.create(ctx, "p1")).To(Succeed())
		Eventually(ctx, t.used(ctx)).Should(Equal("1"))
		t.send(ctx, "letter", 3)

		By("answering beside newer replicas")
		beRefused := MatchError(ContainSubstring("ledger skipping has encoding 3, this operator knows up to 2: upgrade it"))
		replicas.add(ctx, built.now)
		old := replicas.running[2]
		replicas.balancer.SetBackends(old.WebhookPort)
		tryP2 := func(ctx context.Context) error { return t.create(ctx, "p2") }
		Eventually(ctx, tryP2).Should(beRefused, "once no call is lost with a connection that was cut")
		Expect(t.create(ctx, "p2")).To(beRefused)

		By("leading")
		replicas.drop()
		replicas.drop()
		// Nobody else can write it any more, and this release can't write encoding 3.
		before := t.ledger(ctx)
		Expect(before.Entries.Encoding).To(BeEquivalentTo(3))
		Eventually(ctx, func() (string, error) {
			log, err := os.ReadFile(old.Log())
			return string(log), err
		}).Should(MatchRegexp(`"controller":"usage".*ledger skipping has encoding 3`))
		Eventually(ctx, tryP2).Should(beRefused, "once no call is lost with a connection that was cut")
		Expect(t.ledger(ctx)).To(Equal(before))

		By("being upgraded")
		replicas.roll(ctx, built.next, func() {})
		Eventually(ctx, tryP2).Should(Succeed())
		Expect(t.create(ctx, "p3")).To(t.beFull("3", "3"))
		Eventually(ctx, t.used(ctx)).Should(Equal("2"))
		Expect(t.ledger(ctx).Entries.Encoding).To(BeEquivalentTo(2))
		Expect(t.ledger(ctx).Entries.Reservations).To(ConsistOf(ContainSubstring(inFlight(t, 2))))
	})
})

var _ = Describe("A release whose CRDs are a newer one's", func() {
	It("leaves alone what it doesn't know of a status", func(ctx SpecContext) {
		install(ctx)
		replicas.start(ctx, built.now)
		DeferCleanup(replicas.remove)
		t := newTeam(ctx, "served", "3")
		crd := &unstructured.Unstructured{}
		crd.SetAPIVersion("apiextensions.k8s.io/v1")
		crd.SetKind("CustomResourceDefinition")
		crd.SetName("clusterresourcequotas.quota.sharedquota.dev")
		Expect(api.Patch(ctx, crd, client.RawPatch(types.JSONPatchType, []byte(`[{"op": "add",
			"path": "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/newer", "value": {"type": "string"}}]`)))).To(Succeed())
		DeferCleanup(install)

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
			patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"newer":"kept"}}`))
			Expect(api.Status().Patch(ctx, builders.Quota(t.name).Obj(), patch)).To(Succeed())
			return newer(ctx)
		}).Should(Equal("kept"))

		Expect(t.create(ctx, "p1")).To(Succeed())
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			quota := &quotav1.ClusterResourceQuota{}
			g.Expect(api.Get(ctx, client.ObjectKey{Name: t.name}, quota)).To(Succeed())
			g.Expect(quota.Status.Total.Used.Pods().Value()).To(BeEquivalentTo(1))
		}).Should(Succeed())
		Expect(newer(ctx)).To(Equal("kept"))
	})
})
