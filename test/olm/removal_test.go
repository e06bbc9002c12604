// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// removalSpecs remove the operator twice: first in the wrong order, then as the
// documentation says.
func removalSpecs() {
	const apart = "apart"
	steps := map[string]string{}

	BeforeAll(func(ctx SpecContext) {
		var order []string
		for _, line := range suite.Commands("test/olm", "docs/olm.md", "Uninstall") {
			what := strings.Fields(line)[2]
			steps[what] = line
			order = append(order, what)
		}
		Expect(order).To(Equal([]string{
			"clusterresourcequotas", "subscriptions.operators.coreos.com,clusterserviceversions", "validatingwebhookconfiguration", "-f", "crd",
			"clusterroles", "namespace",
		}), "the order of the specs below")
		Expect(admin.Create(ctx, builders.Namespace(apart).Obj())).To(Succeed())
		enforceExample(ctx)
	})

	It("refuses what quotas limit if they are kept, and nothing else", func(ctx SpecContext) {
		remove(ctx, given)
		Expect(admin.Create(ctx, balancer(shop, "late"))).To(MatchError(ContainSubstring("failed calling webhook")))
		Expect(admin.Create(ctx, balancer(apart, "one"))).To(Succeed())
		Expect(admin.Create(ctx, builders.ConfigMap(shop, "one"))).To(Succeed())
	})

	It("refuses nothing more once the webhook configuration is deleted", func(ctx SpecContext) {
		kubectl(ctx, steps["validatingwebhookconfiguration"])
		Eventually(ctx, func(ctx context.Context) error { return admin.Create(ctx, balancer(shop, "late")) }).Should(Succeed())
	})

	It("enforces the quotas that were kept once it is installed again", func(ctx SpecContext) {
		install(ctx, given)
		runReplicas(ctx)
		suite.WaitUntilEnforced(ctx, admin, quotaName)
		Eventually(ctx, func(ctx context.Context) error { return admin.Create(ctx, balancer(books, "more"), client.DryRunAll) }).
			Should(suite.BeExceeded(quotaName, loadBalancers))
	})

	It("in the documented order refuses nothing at any time", func(ctx SpecContext) {
		kubectl(ctx, steps["clusterresourcequotas"])
		free := func(ctx context.Context, name string) {
			GinkgoHelper()
			Expect(admin.Create(ctx, balancer(shop, name))).To(Succeed())
		}
		free(ctx, "without-quotas")
		Eventually(ctx, func(ctx context.Context) string {
			configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
			Expect(admin.Get(ctx, client.ObjectKey{Name: "shared-quota"}, configuration)).To(Succeed())
			return fmt.Sprint(configuration.Webhooks)
		}).ShouldNot(ContainSubstring("admit-objects"), "the leader writes at most once a second")
		remove(ctx, given)
		free(ctx, "without-replicas")
		kubectl(ctx, steps["validatingwebhookconfiguration"])
		free(ctx, "without-configuration")
		Expect(admin.List(ctx, &quotav1.ClusterResourceQuotaList{})).To(Succeed(), "OLM leaves the types")
	})

	It("leaves nothing after the last commands of the documentation", func(ctx SpecContext) {
		suite.KubectlStdin(ctx, cluster, inOurNamespace("config/olm/extras.yaml"), "delete", "-f", "-", "--timeout=60s")
		kubectl(ctx, steps["crd"])
		kubectl(ctx, steps["clusterroles"])
		Eventually(ctx, suite.Left).WithArguments(admin).Should(
			ConsistOf("Lease shared-quota-operator", "Secret shared-quota-webhook-cert"), "which go with the namespace")
		free := balancer(shop, "without-anything")
		Expect(admin.Create(ctx, free)).To(Succeed())
	})
}

// kubectl runs a line of the documentation.
func kubectl(ctx context.Context, line string) {
	GinkgoHelper()
	suite.Kubectl(ctx, cluster, append(strings.Fields(strings.TrimPrefix(line, "kubectl ")), "--timeout=60s")...)
}

// enforceExample creates the quota of the bundle's examples, and takes all that it leaves of load balancers.
func enforceExample(ctx context.Context) {
	GinkgoHelper()
	for _, example := range given.examples() {
		if example.GetKind() == "ClusterResourceQuota" {
			Expect(admin.Create(ctx, example)).To(Succeed())
		}
	}
	suite.WaitUntilEnforced(ctx, admin, quotaName)
	Expect(admin.Create(ctx, balancer(books, "more"), client.DryRunAll)).To(suite.BeExceeded(quotaName, loadBalancers))
}
