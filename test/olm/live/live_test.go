// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

const quotaName, shop, books = "payments", "shop", "books"

// In this order: each needs what came before.
var _ = Describe("OLM", Ordered, func() {
	var offered catalog
	var replicas *suite.Replicas

	BeforeAll(func(ctx SpecContext) {
		var err error
		offered.port, err = harness.FreePort()
		Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{shop, books} {
			Expect(admin.Create(ctx, builders.Namespace(name).Label("team", quotaName).Obj())).To(Succeed())
		}
		suite.Kubelet(ctx, cluster, suite.Namespace)
	})

	AfterAll(func() {
		if replicas != nil {
			replicas.End()
		}
	})

	It("installs the operator from a catalog, by the objects that the documentation gives", func(ctx SpecContext) {
		offered.offer(ctx, releases[0])
		suite.KubectlStdin(ctx, cluster, offered.source(), "apply", "--validate=strict", "-f", "-")
		waitUntilInstalled(ctx, "0.1.0")
		replicas = suite.RunReplicas(ctx, cluster, suite.Namespace, func(string) string { return binary })
		Expect(replicas.Running).To(HaveLen(2))
		suite.Kubectl(ctx, cluster, "apply", "-f", "config/olm/extras.yaml")
	})

	It("gives it the rights with which it enforces a quota", func(ctx SpecContext) {
		quota := builders.Quota(quotaName).Label("team", quotaName).Hard("services.loadbalancers", "2").Obj()
		Expect(admin.Create(ctx, quota)).To(Succeed())
		suite.WaitUntilEnforced(ctx, admin, quotaName)
		for _, one := range []client.Object{balancer(shop, "first"), balancer(books, "second")} {
			Expect(admin.Create(ctx, one)).To(Succeed())
		}
		Expect(admin.Create(ctx, balancer(books, "third"))).To(beFull())
		view := &quotav1.LocalResourceQuota{}
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: shop, Name: quotaName}, view)).To(Succeed())
			g.Expect(view.Status.Summary).To(ContainSubstring("services.loadbalancers: 2/2"))
		}).Should(Succeed())
		for _, replica := range replicas.Running {
			Expect(suite.LogOf(replica.Process)).NotTo(ContainSubstring("forbidden"))
		}
	})

	It("upgrades it along the edges of its bundles, while it enforces", func(ctx SpecContext) {
		const newest = "0.4.0"
		before := configuration(ctx)
		stop := refusedAllTheWhile(ctx)
		offered.offer(ctx, releases...)
		waitUntilInstalled(ctx, newest)
		Expect(replicas.Reload(ctx)).To(Succeed())
		Expect(replicas.Image()).To(HaveSuffix(":v" + newest))
		replicas.Roll(ctx, func() { Expect(admin.Create(ctx, balancer(books, "third"))).To(beFull()) })
		Expect(stop()).To(BeNumerically(">", 20), "requests that were refused meanwhile")
		Expect(configuration(ctx).UID).To(Equal(before.UID), "the configuration was never deleted")
		Eventually(ctx, versions).Should(ConsistOf(csvOf(newest)))
		Expect(installed(ctx)).To(ConsistOf(csvOf("0.1.0"), csvOf("0.3.0"), csvOf(newest)), "0.2.0 is skipped, and 0.3.0 is not")
	})

	It("removes it as the documentation says, and refuses nothing meanwhile", func(ctx SpecContext) {
		for _, line := range suite.Commands("test/olm", "docs/olm.md", "Uninstall") {
			By(line)
			suite.Kubectl(ctx, cluster, append(strings.Fields(strings.TrimPrefix(line, "kubectl ")), "--timeout=60s")...)
			if strings.Contains(line, "clusterserviceversions") {
				replicas.EndWithoutRights()
				replicas = nil
				Eventually(ctx, deployments).Should(BeEmpty())
			}
			if !strings.Contains(line, "clusterresourcequotas --all") {
				Expect(admin.Create(ctx, balancer(shop, "free"), client.DryRunAll)).To(Succeed())
			}
		}
		Eventually(ctx, suite.Left).WithArguments(admin).Should(BeEmpty())
	})
})

// refusedAllTheWhile asks for one more again and again, and fails if that isn't refused for the quota's sake.
// The function that it returns ends that, and returns how often it was.
func refusedAllTheWhile(ctx context.Context) (stop func() int) {
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	refused := 0
	asking.Go(func() {
		defer GinkgoRecover()
		for ctx.Err() == nil {
			err := admin.Create(ctx, balancer(books, "third"), client.DryRunAll)
			if ctx.Err() != nil {
				return
			}
			Expect(err).To(beFull())
			refused++
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	return func() int {
		cancel()
		asking.Wait()
		return refused
	}
}

// listed returns the objects of one of OLM's types in the operator's namespace.
func listed(ctx context.Context, kind string) []unstructured.Unstructured {
	GinkgoHelper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v1alpha1", Kind: kind})
	Expect(admin.List(ctx, list, client.InNamespace(suite.Namespace))).To(Succeed())
	return list.Items
}

// waitUntilInstalled returns once OLM says that a version is.
func waitUntilInstalled(ctx context.Context, version string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) map[string]any {
		for _, csv := range listed(ctx, "ClusterServiceVersion") {
			if csv.GetName() == csvOf(version) {
				status, _, _ := unstructured.NestedMap(csv.Object, "status")
				return status
			}
		}
		return nil
	}).WithTimeout(3*time.Minute).Should(HaveKeyWithValue("phase", "Succeeded"), version)
}

// versions returns the ClusterServiceVersions that there are.
func versions(ctx context.Context) []string {
	GinkgoHelper()
	var names []string
	for _, csv := range listed(ctx, "ClusterServiceVersion") {
		names = append(names, csv.GetName())
	}
	return names
}

// installed returns the ClusterServiceVersions that OLM ever planned to install.
func installed(ctx context.Context) []string {
	GinkgoHelper()
	var names []string
	for _, plan := range listed(ctx, "InstallPlan") {
		planned, _, err := unstructured.NestedStringSlice(plan.Object, "spec", "clusterServiceVersionNames")
		Expect(err).NotTo(HaveOccurred())
		names = append(names, planned...)
	}
	return names
}

func configuration(ctx context.Context) *admissionregistrationv1.ValidatingWebhookConfiguration {
	GinkgoHelper()
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	Expect(admin.Get(ctx, client.ObjectKey{Name: "shared-quota"}, configuration)).To(Succeed())
	return configuration
}

func deployments(ctx context.Context) []metav1.PartialObjectMetadata {
	GinkgoHelper()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	Expect(admin.List(ctx, list, client.InNamespace(suite.Namespace))).To(Succeed())
	return list.Items
}

func balancer(namespace, name string) *corev1.Service {
	return builders.Service(namespace, name).Type(corev1.ServiceTypeLoadBalancer, 80).Obj()
}

// beFull matches the refusal of a load balancer by the quota.
func beFull() OmegaMatcher {
	return suite.BeExceededAt(quotaName, "services.loadbalancers", "2", "2")
}
