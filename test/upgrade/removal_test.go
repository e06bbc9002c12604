// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

func configurationIsGone(ctx context.Context) bool {
	err := api.Get(ctx, client.ObjectKey{Name: "shared-quota"}, &admissionregistrationv1.ValidatingWebhookConfiguration{})
	return apierrors.IsNotFound(err)
}

// countNothing takes from the operator the right to see what quotas limit. It has it
// again once it is installed again.
func countNothing(ctx context.Context) {
	GinkgoHelper()
	suite.Kubectl(ctx, cluster, "delete", "clusterrolebinding", "shared-quota-reader-rolebinding", "shared-quota-reader-all-rolebinding")
}

// uninstall removes what is installed.
func uninstall(ctx context.Context) {
	GinkgoHelper()
	suite.Kubectl(ctx, cluster, "delete", "-k", "config/default", "--timeout=90s")
}

var _ = Describe("An operator that is removed", Ordered, func() {
	var full, empty, anew *team

	It("while quotas are kept leaves their namespaces free", func(ctx SpecContext) {
		begin(ctx, built.now)
		full, empty = newTeam(ctx, "filling", "3"), newTeam(ctx, "emptying", "2")
		Expect(full.create(ctx, "p1")).To(Succeed())
		full.send(ctx, "letter", 2)
		Expect(empty.create(ctx, "p1")).To(Succeed())
		Expect(empty.create(ctx, "p2")).To(Succeed())
		Eventually(ctx, full.used(ctx)).Should(Equal("1"))
		Eventually(ctx, empty.used(ctx)).Should(Equal("2"))

		suite.Kubectl(ctx, cluster, "delete", "namespace", suite.Namespace, "--timeout=60s", "--wait=false")
		replicas.End() // as the kubelet does
		Eventually(ctx, configurationIsGone).Should(BeTrue())
		for i := range 4 {
			Eventually(ctx, func(ctx context.Context) error { return full.create(ctx, fmt.Sprintf("more-%d", i)) }).Should(Succeed())
		}
		Expect(api.DeleteAllOf(ctx, builders.Pod(empty.namespaces[0], "").Obj(), client.InNamespace(empty.namespaces[0]))).To(Succeed())
		suite.Kubectl(ctx, cluster, "wait", "--for=delete", "namespace/"+suite.Namespace, "--timeout=60s")
	})

	It("and installed again long after counts what lives, and grants nothing before", func(ctx SpecContext) {
		suite.Install(ctx, cluster)
		countNothing(ctx)
		const shortest = 40 * time.Second
		runInstalled(ctx, built.now, "--reservation-ttl="+shortest.String())
		By("having a ledger that says that 1 of 3 is used, where 5 are")
		refused := suite.BeUncounted("filling", "pods")
		Eventually(ctx, configurationIsGone).Should(BeFalse())
		probe := func(ctx context.Context) error {
			return api.Create(ctx, builders.Pod(full.namespaces[0], "late").Obj(), client.DryRunAll)
		}
		Eventually(ctx, probe).Should(refused)
		Expect(full.create(ctx, "late")).To(refused)

		suite.Install(ctx, cluster)
		suite.WaitUntilEnforced(ctx, api, full.name)
		Eventually(ctx, func(ctx context.Context) []string { return full.ledger(ctx).Entries.Reservations }).
			WithTimeout(shortest+suite.Deadline).Should(BeEmpty(), "what was in flight has expired")
		Expect(full.create(ctx, "late")).To(full.beFull("5", "3"))
		By("having a ledger that says that 2 of 2 are used, where none is")
		suite.WaitUntilEnforced(ctx, api, empty.name)
		for _, name := range []string{"p3", "p4"} {
			Expect(empty.create(ctx, name)).To(Succeed())
		}
		Expect(empty.create(ctx, "p5")).To(empty.beFull("2", "2"))
	})

	It("with all there is leaves nothing behind, even if none was running any more", func(ctx SpecContext) {
		Expect(suite.Left(ctx, api)).NotTo(BeEmpty())
		Expect(full.create(ctx, "late")).To(MatchError(ContainSubstring("failed calling webhook")))
		uninstall(ctx)
		Eventually(ctx, suite.Left).WithArguments(api).Should(BeEmpty())
		for _, t := range []*team{full, empty} {
			Eventually(ctx, func(ctx context.Context) error { return t.create(ctx, "free") }).Should(Succeed())
		}
		suite.Kubectl(ctx, cluster, slices.Concat([]string{"delete", "namespace", "--timeout=60s"}, full.namespaces, empty.namespaces)...)
	})

	It("and installed from nothing counts what lives, and goes by it from the start", func(ctx SpecContext) {
		anew = &team{name: "anew", namespaces: []string{"anew-a"}}
		Expect(api.Create(ctx, builders.Namespace("anew-a").Label("team", "anew").Obj())).To(Succeed())
		for _, name := range []string{"p1", "p2"} {
			Expect(anew.create(ctx, name)).To(Succeed())
		}
		begin(ctx, built.now)
		anew.limit(ctx, "3")
		Expect(anew.create(ctx, "p3")).To(Succeed())
		Expect(anew.create(ctx, "p4")).To(anew.beFull("3", "3"))
	})

	It("after its quotas leaves nothing behind, and refuses nothing meanwhile", func(ctx SpecContext) {
		begin(ctx, built.now)
		suite.WaitUntilEnforced(ctx, api, anew.name)
		suite.Kubectl(ctx, cluster, "delete", "crq", "--all", "--timeout=60s")
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			ledgers, views := &quotav1.QuotaLedgerList{}, &quotav1.LocalResourceQuotaList{}
			g.Expect(api.List(ctx, ledgers)).To(Succeed())
			g.Expect(api.List(ctx, views)).To(Succeed())
			g.Expect(ledgers.Items).To(BeEmpty())
			g.Expect(views.Items).To(BeEmpty())
		}).Should(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return anew.create(ctx, "free") }).Should(Succeed())

		replicas.End()
		Expect(anew.create(ctx, "freer")).To(Succeed(), "nobody is asked")
		uninstall(ctx)
		Eventually(ctx, suite.Left).WithArguments(api).Should(BeEmpty())
		Expect(anew.create(ctx, "freest")).To(Succeed())
	})
})
