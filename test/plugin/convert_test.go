// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// Namespaces carry the labels and annotations that the peers give them.
var _ = Describe("kubectl crq convert", func() {
	const manifests = "../../cmd/kubectl-crq/internal/conversion/testdata"

	DescribeTable("writes quotas that the API server and the operator take",
		func(ctx SpecContext, name string) {
			golden := absolute(filepath.Join(manifests, name+".golden.yaml"))
			mustKubectl(ctx, "create", "--dry-run=server", "-f", golden)
			created := mustKubectl(ctx, "create", "-o", "name", "-f", golden)
			for quota := range strings.Lines(created) {
				Expect(quota).To(HavePrefix("clusterresourcequota.quota.sharedquota.dev/"))
				mustKubectl(ctx, "delete", strings.TrimSpace(quota))
			}
		},
		Entry("from OpenShift", "openshift"),
		Entry("from OpenShift, in part", "openshift-refused"),
		Entry("from HNC", "hnc"),
		Entry("from Capsule's Tenants", "capsule"),
		Entry("from Capsule's pools", "capsule-pools"),
	)

	It("says what can't be converted, without any cluster", func(ctx SpecContext) {
		nowhere := filepath.Join(GinkgoT().TempDir(), "none")
		got := crqAs(ctx, nowhere, "convert", "-f", absolute(filepath.Join(manifests, "capsule-pools-refused.yaml")))
		Expect(got.status).To(Equal(1))
		Expect(got.stdout).To(BeEmpty())
		Expect(got.stderr).To(ContainSubstring("# not converted: "))
		Expect(got.stderr).To(ContainSubstring("error: 5 could not be converted"))
	})

	It("limits what OpenShift's quota limited", func(ctx SpecContext) {
		for _, name := range []string{"conv-ocp-a", "conv-ocp-b", "conv-ocp-other"} {
			requester := map[bool]string{true: "bob", false: "alice"}[name == "conv-ocp-other"]
			project := builders.Namespace(name).Obj()
			project.Annotations = map[string]string{"openshift.io/requester": requester}
			mustCreate(ctx, project)
		}
		converted(ctx, "conv-ocp", `
apiVersion: quota.openshift.io/v1
kind: ClusterResourceQuota
metadata: {name: conv-ocp}
spec:
  quota: {hard: {services: "1", count/deploymentconfigs.apps: "1"}} # the latter isn't served
  selector: {annotations: {openshift.io/requester: alice}, labels: null}
`)
		wantShared(ctx, "conv-ocp", "conv-ocp-a", "conv-ocp-b", "conv-ocp-other")
	})

	It("limits what HNC's quota limited", func(ctx SpecContext) {
		namespace(ctx, "conv-hnc", "conv-hnc.tree.hnc.x-k8s.io/depth", "0")
		namespace(ctx, "conv-hnc-team", "conv-hnc-team.tree.hnc.x-k8s.io/depth", "0", "conv-hnc.tree.hnc.x-k8s.io/depth", "1")
		namespace(ctx, "conv-hnc-other", "conv-hnc-other.tree.hnc.x-k8s.io/depth", "0")
		converted(ctx, "conv-hnc-budget", `
apiVersion: hnc.x-k8s.io/v1alpha2
kind: HierarchicalResourceQuota
metadata: {name: budget, namespace: conv-hnc}
spec: {hard: {services: 1}}
`)
		wantShared(ctx, "conv-hnc-budget", "conv-hnc", "conv-hnc-team", "conv-hnc-other")

		By("selecting by a label of one's own, before HNC is removed")
		mustKubectl(ctx, "label", "namespaces", "-l", "conv-hnc.tree.hnc.x-k8s.io/depth", "team=conv-hnc")
		mustKubectl(ctx, "patch", "clusterresourcequotas.quota.sharedquota.dev", "conv-hnc-budget", "--type=merge",
			"-p", `{"spec":{"selector":{"labels":{"matchExpressions":null,"matchLabels":{"team":"conv-hnc"}}}}}`)
		mustKubectl(ctx, "wait", "--for=condition=Enforced", "--timeout=60s",
			"clusterresourcequotas.quota.sharedquota.dev/conv-hnc-budget")
		Eventually(ctx, func(ctx context.Context) string {
			return kubectl(ctx, cluster.Kubeconfig(), nil, "get", "crq", "conv-hnc-budget", "-o", "jsonpath={.status.selector}").stdout
		}).Should(Equal("team=conv-hnc"))
		suite.WaitUntilEnforced(ctx, api, "conv-hnc-budget")
		refused := createService(ctx, "conv-hnc-team", "three")
		Expect(refused.stderr).To(ContainSubstring("exceeded quota: conv-hnc-budget, requested: services=1, used: services=1"))
	})

	It("limits what a Capsule Tenant's quota limited", func(ctx SpecContext) {
		namespace(ctx, "conv-solar-test", "capsule.clastix.io/tenant", "conv-solar")
		namespace(ctx, "conv-solar-live", "capsule.clastix.io/tenant", "conv-solar")
		namespace(ctx, "conv-wind-live", "capsule.clastix.io/tenant", "conv-wind")
		converted(ctx, "conv-solar-0", `
apiVersion: capsule.clastix.io/v1beta2
kind: Tenant
metadata: {name: conv-solar}
spec:
  owners: [{name: alice, kind: User}]
  resourceQuotas: {scope: Tenant, items: [{hard: {services: "1"}}]}
`)
		wantShared(ctx, "conv-solar-0", "conv-solar-test", "conv-solar-live", "conv-wind-live")
	})
})

// converted applies what a manifest is converted to, by the commands of
// docs/migration.md, and returns once the quota of this name is counted and
// enforced. It is deleted with the spec.
func converted(ctx context.Context, name, manifest string) {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	given, quotas := filepath.Join(dir, "given.yaml"), filepath.Join(dir, "quotas.yaml")
	Expect(os.WriteFile(given, []byte(manifest), 0o600)).To(Succeed())
	Expect(os.WriteFile(quotas, []byte(mustCrq(ctx, "convert", "-f", given)), 0o600)).To(Succeed())
	mustKubectl(ctx, "apply", "--dry-run=server", "-f", quotas)
	mustKubectl(ctx, "apply", "-f", quotas)
	DeferCleanup(func(ctx context.Context) { mustKubectl(ctx, "delete", "-f", quotas) })
	for _, condition := range []string{quotav1.ConditionReady, quotav1.ConditionEnforced} {
		mustKubectl(ctx, "wait", "--for=condition="+condition, "--timeout=60s", "-f", quotas)
	}
	Expect(mustKubectl(ctx, "get", "clusterresourcequotas.quota.sharedquota.dev", name, "-o", "jsonpath={.status.total.used}")).
		To(MatchJSON(`{"services": "0"}`))
}

// wantShared uses up the quota's one service in the first namespace: there is
// none left for the second, and the other one isn't limited.
func wantShared(ctx context.Context, quota, first, second, other string) {
	GinkgoHelper()
	mustSucceed(createService(ctx, first, "one"))
	for _, namespace := range []string{first, second} {
		refused := createService(ctx, namespace, "two")
		Expect(refused.status).To(Equal(1), refused.stdout)
		Expect(refused.stderr).To(ContainSubstring(
			"exceeded quota: " + quota + ", requested: services=1, used: services=1, limited: services=1"))
	}
	mustSucceed(createService(ctx, other, "one"))
	mustSucceed(createService(ctx, other, "two"))
}

func createService(ctx context.Context, namespace, name string) outcome {
	GinkgoHelper()
	return kubectl(ctx, cluster.Kubeconfig(), nil, "create", "service", "clusterip", name, "--clusterip=None", "-n", namespace)
}

// absolute is for kubectl, which runs in a directory of its own.
func absolute(path string) string {
	GinkgoHelper()
	path, err := filepath.Abs(path)
	Expect(err).NotTo(HaveOccurred())
	return path
}
