// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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
			Should(MatchError(ContainSubstring("exceeded quota: payments")))
	})

	It("in the documented order refuses nothing at any time", func(ctx SpecContext) {
		kubectl(ctx, steps["clusterresourcequotas"])
		free := func(ctx context.Context, name string) {
			GinkgoHelper()
			Expect(admin.Create(ctx, balancer(shop, name))).To(Succeed())
		}
		free(ctx, "without-quotas")
		remove(ctx, given)
		free(ctx, "without-replicas")
		kubectl(ctx, steps["validatingwebhookconfiguration"])
		free(ctx, "without-configuration")
		Expect(admin.List(ctx, &quotav1.ClusterResourceQuotaList{})).To(Succeed(), "OLM leaves the types")
	})

	It("leaves nothing after the last commands of the documentation", func(ctx SpecContext) {
		kubectlDelete(ctx, inOurNamespace("config/olm/extras.yaml"))
		kubectl(ctx, steps["crd"])
		kubectl(ctx, steps["clusterroles"])
		configurations := &admissionregistrationv1.ValidatingWebhookConfigurationList{}
		Expect(admin.List(ctx, configurations)).To(Succeed())
		Expect(configurations.Items).To(BeEmpty())
		roles, bindings := &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}
		Expect(admin.List(ctx, roles)).To(Succeed())
		Expect(roles.Items).NotTo(ContainElement(HaveField("Name", ContainSubstring("shared-quota"))))
		Expect(admin.List(ctx, bindings)).To(Succeed())
		Expect(bindings.Items).NotTo(ContainElement(HaveField("Name", ContainSubstring("shared-quota"))))
		types := &apiextensionsv1.CustomResourceDefinitionList{}
		Expect(admin.List(ctx, types)).To(Succeed())
		Expect(types.Items).NotTo(ContainElement(HaveField("Spec.Group", quotav1.GroupVersion.Group)))
		free := balancer(shop, "without-anything")
		Expect(admin.Create(ctx, free)).To(Succeed())
	})
}

// kubectl runs a line of the documentation.
func kubectl(ctx context.Context, line string) {
	GinkgoHelper()
	Expect(line).NotTo(BeEmpty(), "the documentation has the command")
	args := strings.Fields(strings.TrimPrefix(line, "kubectl "))
	result, err := cluster.Kubectl(ctx, nil, append(args, "--timeout=60s")...)
	Expect(err).NotTo(HaveOccurred())
	Expect(result.ExitCode).To(BeZero(), result.Stdout+result.Stderr)
}

func kubectlDelete(ctx context.Context, manifest string) {
	GinkgoHelper()
	result, err := cluster.Kubectl(ctx, strings.NewReader(manifest), "delete", "-f", "-", "--timeout=60s")
	Expect(err).NotTo(HaveOccurred())
	Expect(result.ExitCode).To(BeZero(), result.Stdout+result.Stderr)
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
	Expect(admin.Create(ctx, balancer(books, "more"), client.DryRunAll)).To(MatchError(ContainSubstring("exceeded quota: payments")))
}
