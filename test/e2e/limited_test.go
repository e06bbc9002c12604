// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// limitedByDefault is the file that the operator is given, and kube-apiserver's
// own plugin.
const limitedByDefault = `apiVersion: apiserver.config.k8s.io/v1
kind: ResourceQuotaConfiguration
limitedResources:
- resource: pods
  matchScopes:
  - {scopeName: PriorityClass, operator: In, values: [reserved]}
  - {scopeName: CrossNamespacePodAffinity, operator: Exists}
- resource: services
  matchContains: [services.loadbalancers]
- resource: persistentvolumeclaims
  matchContains: [.storageclass.storage.k8s.io/]
`

const (
	reservedUncovered  = "insufficient quota to match these scopes: [{PriorityClass In [reserved]}]"
	crossingUncovered  = "insufficient quota to match these scopes: [{CrossNamespacePodAffinity Exists []}]"
	balancersUncovered = "insufficient quota to consume: services.loadbalancers"
	silverUncovered    = "insufficient quota to consume: " +
		"silver.storageclass.storage.k8s.io/persistentvolumeclaims,silver.storageclass.storage.k8s.io/requests.storage"
)

var _ = Describe("What is limited by default", Ordered, func() {
	reserved := func(namespace, name string) client.Object {
		return builders.Pod(namespace, name).PriorityClass("reserved").Obj()
	}
	crossing := func(namespace, name string) client.Object {
		return builders.Pod(namespace, name).AwayFrom("elsewhere").Obj()
	}
	balancer := func(namespace, name string) client.Object {
		return builders.Service(namespace, name).Type(corev1.ServiceTypeLoadBalancer, 80).Obj()
	}
	silver := func(namespace, name string) client.Object {
		return builders.VolumeClaim(namespace, name).StorageClass("silver").Obj()
	}
	low := func(namespace, name string) client.Object {
		return builders.Pod(namespace, name).PriorityClass("low").Obj()
	}
	plainPod := func(namespace, name string) client.Object { return builders.Pod(namespace, name).Obj() }
	internal := func(namespace, name string) client.Object {
		return builders.Service(namespace, name).Type(corev1.ServiceTypeClusterIP, 80).Obj()
	}
	plainClaim := func(namespace, name string) client.Object { return builders.VolumeClaim(namespace, name).Obj() }

	var path string

	BeforeAll(func(ctx SpecContext) {
		path = filepath.Join(GinkgoT().TempDir(), "limited.yaml")
		Expect(os.WriteFile(path, []byte(limitedByDefault), 0o600)).To(Succeed())
		mustCreate(ctx, builders.PriorityClass("reserved", 500))
		DeferCleanup(deleteIfThere, builders.PriorityClass("reserved", 500))
		DeferCleanup(func(ctx SpecContext) { replaceOperator(ctx) })
		replaceOperator(ctx, "--limited-resources", path)
		Eventually(ctx, func(ctx context.Context) error {
			return api.Create(ctx, balancer("default", "probe"), client.DryRunAll)
		}).Should(BeRefused(balancersUncovered))
	})

	DescribeTable("is refused where no quota covers it, and counted where one does",
		func(ctx SpecContext, build func(namespace, name string) client.Object, refusal string,
			restrict func(*builders.QuotaBuilder) *builders.QuotaBuilder, used string,
		) {
			team := newTeam()
			inside, outside := team.namespace(ctx), newTeam().namespace(ctx)
			Expect(api.Create(ctx, build(inside, "early"))).To(BeRefused(refusal))

			By("a quota that limits something else")
			enforce(ctx, builders.Quota(team.name+"-other").Label(teamLabel, team.name).Hard("configmaps", "10"))
			Expect(api.Create(ctx, build(inside, "early"))).To(BeRefused(refusal))

			By("a quota that covers it")
			quota := enforce(ctx, restrict(team.quota()))
			mustCreate(ctx, build(inside, "one"))
			eventuallyUses(ctx, quota, used)
			Expect(api.Create(ctx, build(inside, "two"))).To(MatchError(ContainSubstring("exceeded quota: " + quota.Name + ", ")))
			Expect(api.Create(ctx, build(outside, "one"))).To(BeRefused(refusal))
		},
		Entry("a priority class", reserved, reservedUncovered, func(q *builders.QuotaBuilder) *builders.QuotaBuilder {
			return q.Hard("pods", "1").ScopeSelector(corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpIn, "reserved")
		}, "pods=1"),
		Entry("affinity across namespaces", crossing, crossingUncovered, func(q *builders.QuotaBuilder) *builders.QuotaBuilder {
			return q.Hard("pods", "1").ScopeSelector(corev1.ResourceQuotaScopeCrossNamespacePodAffinity, corev1.ScopeSelectorOpExists)
		}, "pods=1"),
		Entry("a load balancer", balancer, balancersUncovered, func(q *builders.QuotaBuilder) *builders.QuotaBuilder {
			return q.Hard("services.loadbalancers", "1")
		}, "services.loadbalancers=1"),
		Entry("a storage class", silver, silverUncovered, func(q *builders.QuotaBuilder) *builders.QuotaBuilder {
			return q.Hard("silver.storageclass.storage.k8s.io/persistentvolumeclaims", "1").
				Hard("silver.storageclass.storage.k8s.io/requests.storage", "10Gi")
		}, "silver.storageclass.storage.k8s.io/persistentvolumeclaims=1,silver.storageclass.storage.k8s.io/requests.storage=1Gi"),
	)

	DescribeTable("leaves the rest alone", func(ctx SpecContext, build func(namespace, name string) client.Object) {
		mustCreate(ctx, build(newTeam().namespace(ctx), "free"))
	},
		Entry("a pod of another class", low),
		Entry("a pod without a class", plainPod),
		Entry("a service of another type", internal),
		Entry("a claim without a class", plainClaim),
	)

	It("refuses what an update would make of it", func(ctx SpecContext) {
		service := mustCreate(ctx, builders.Service(newTeam().namespace(ctx), "web").Type(corev1.ServiceTypeClusterIP, 80).Obj())
		wanted := service.DeepCopy()
		wanted.Spec.Type = corev1.ServiceTypeLoadBalancer
		Expect(api.Patch(ctx, wanted, client.MergeFrom(service))).To(BeRefused(balancersUncovered))
	})

	It("is free in protected namespaces", func(ctx SpecContext) {
		Expect(api.Create(ctx, reserved("kube-system", "core"), client.DryRunAll)).To(Succeed())
	})

	It("says what kube-apiserver says with the same file", func(ctx SpecContext) {
		native := startNative(ctx, path)
		Expect(native.Create(ctx, builders.PriorityClass("reserved", 500))).To(Succeed())
		Expect(native.Create(ctx, builders.PriorityClass("low", 10))).To(Succeed())
		// Its admission knows a class a moment after it was created.
		Eventually(ctx, native.Create).WithArguments(reserved("default", "probe"), client.DryRunAll).
			Should(MatchError(ContainSubstring(reservedUncovered)))
		Eventually(ctx, native.Create).WithArguments(low("default", "probe"), client.DryRunAll).Should(Succeed())
		namespace := newTeam().namespace(ctx)
		refused := 0
		for i, build := range []func(namespace, name string) client.Object{
			reserved, crossing, balancer, silver, low, plainPod, internal, plainClaim,
		} {
			name := fmt.Sprintf("o%d", i)
			want, got := native.Create(ctx, build("default", name)), api.Create(ctx, build(namespace, name))
			if want == nil {
				Expect(got).NotTo(HaveOccurred())
				continue
			}
			refused++
			GinkgoWriter.Println(want)
			Expect(got).To(MatchError(HavePrefix(deniedBy)))
			Expect(want.Error()).To(HaveSuffix(strings.TrimPrefix(got.Error(), deniedBy)))
		}
		Expect(refused).To(Equal(4))
	})

	It("is asked about only as long as it is", func(ctx SpecContext) {
		replaceOperator(ctx)
		Eventually(ctx, func(ctx context.Context) error {
			return api.Create(ctx, balancer("default", "probe"), client.DryRunAll)
		}).Should(Succeed())
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
			g.Expect(api.Get(ctx, client.ObjectKey{Name: "shared-quota"}, configuration)).To(Succeed())
			g.Expect(configuration.Webhooks).To(HaveLen(2), "without quotas, those of quotas and of probes")
		}).Should(Succeed())
	})

	It("is told of a file that is wrong at the start", func(ctx SpecContext) {
		wrong := filepath.Join(GinkgoT().TempDir(), "wrong.yaml")
		Expect(os.WriteFile(wrong, []byte(strings.Replace(limitedByDefault, "PodAffinity", "Affinity", 1)), 0o600)).To(Succeed())
		output, err := exec.CommandContext(ctx, settings.Binary, "--limited-resources", wrong).CombinedOutput()
		Expect(err).To(HaveOccurred())
		Expect(string(output)).To(ContainSubstring(
			"manager: reading limited resources from " + wrong + ": validating it: limitedResources[0].matchScopes[1].scopeName: "))
	})
})

// replaceOperator puts an operator with these further arguments in the place of
// the one that runs.
func replaceOperator(ctx context.Context, args ...string) {
	GinkgoHelper()
	Expect(running.Stop()).To(Succeed())
	options := settings
	options.Args = append(slices.Clone(settings.Args), args...)
	startWith(ctx, options)
}

// startNative runs an API server of its own whose ResourceQuota plugin has this
// configuration, and returns the admin's client.
func startNative(ctx context.Context, configuration string) client.Client {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "admission.yaml")
	Expect(os.WriteFile(path, fmt.Appendf(nil, "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n"+
		"plugins: [{name: ResourceQuota, path: %q}]\n", configuration), 0o600)).To(Succeed())
	_, native := suite.Start(ctx, harness.Options{
		CRDDirs: []string{}, APIServerFlags: map[string]string{"admission-control-config-file": path},
	})
	return native
}
