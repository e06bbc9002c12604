// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

var strict = client.FieldValidation(metav1.FieldValidationStrict)

// In this order: what comes later needs what came before, or takes it away.
var _ = Describe("OLM", Ordered, func() {
	Context("finds that the bundle", bundleSpecs)
	Context("gives the operator all that it needs, so that it", operatorSpecs)
	Context("removes the operator, and", removalSpecs)
})

func bundleSpecs() {
	It("has a ClusterServiceVersion that OLM's own type takes, every field of it", func(ctx SpecContext) {
		csv := given.object.DeepCopy()
		csv.SetNamespace(namespace)
		csv.SetName("strictly") // beside the one that is installed
		Expect(admin.Create(ctx, csv, client.DryRunAll, strict)).To(Succeed())
	})

	It("has a Deployment, and pods, that a namespace for restricted pods takes", func(ctx SpecContext) {
		deployment := given.csv.Spec.Install.Spec.Deployments[0]
		Expect(admin.Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "strictly", Labels: deployment.Label}, Spec: deployment.Spec,
		}, client.DryRunAll, strict)).To(Succeed())

		template := given.template()
		pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: template.Spec}
		pod.Namespace, pod.Name = namespace, "pod"
		Expect(admin.Create(ctx, pod, client.DryRunAll, strict)).To(Succeed())
		for _, container := range pod.Spec.Containers {
			Expect(given.csv.Spec.RelatedImages).To(ContainElement(HaveField("Image", container.Image)))
		}
	})

	It("gives the operator no more in other namespaces than config/default does", func(ctx SpecContext) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceDefault, Name: "mine"}}
		Expect(operator.Create(ctx, secret, client.DryRunAll)).To(Satisfy(apierrors.IsForbidden))
		secret.Namespace = namespace
		Expect(operator.Create(ctx, secret, client.DryRunAll)).To(Succeed())
	})

	It("is installed by the objects that the documentation gives", func(ctx SpecContext) {
		manifest := inOurNamespace("config/olm/install.yaml")
		suite.KubectlStdin(ctx, cluster, manifest, "apply", "--validate=strict", "-f", "-")
		subscription := &unstructured.Unstructured{}
		subscription.SetAPIVersion("operators.coreos.com/v1alpha1")
		subscription.SetKind("Subscription")
		name := given.annotations["operators.operatorframework.io.bundle.package.v1"]
		Expect(admin.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, subscription)).To(Succeed())
		channel := given.annotations["operators.operatorframework.io.bundle.channel.default.v1"]
		Expect(subscription.Object).To(HaveKeyWithValue("spec", And(HaveKeyWithValue("name", name), HaveKeyWithValue("channel", channel))))
	})
}

const quotaName, shop, books, loadBalancers = "payments", "shop", "books", "services.loadbalancers"

func operatorSpecs() {
	quota := &quotav1.ClusterResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: quotaName}}
	view := &quotav1.LocalResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: quotaName}}
	ledger := &quotav1.QuotaLedger{ObjectMeta: metav1.ObjectMeta{Name: quotaName}}

	BeforeAll(func(ctx SpecContext) {
		for _, name := range []string{shop, books} {
			Expect(admin.Create(ctx, builders.Namespace(name).Label("team", quotaName).Obj())).To(Succeed())
		}
	})

	It("finds that the API server takes each example, from whom it is to come", func(ctx SpecContext) {
		examples := given.examples()
		Expect(examples).To(HaveLen(3))
		for _, example := range examples {
			author := operator
			if example.GetKind() == "ClusterResourceQuota" {
				author = admin
			}
			Expect(author.Create(ctx, example, client.DryRunAll, strict)).To(Succeed(), example.GetKind())
		}
	})

	It("enforces the example of a quota", func(ctx SpecContext) {
		for _, example := range given.examples() {
			if example.GetKind() == "ClusterResourceQuota" {
				Expect(admin.Create(ctx, example)).To(Succeed())
			}
		}
		enforced := suite.WaitUntilEnforced(ctx, admin, quotaName)
		Expect(enforced.Status.NamespaceCount).To(BeEquivalentTo(2))

		for _, one := range []client.Object{balancer(shop, "first"), balancer(books, "second")} {
			Expect(admin.Create(ctx, one)).To(Succeed())
		}
		Expect(admin.Create(ctx, balancer(books, "third"))).To(suite.BeExceededAt(quotaName, loadBalancers, "2", "2"))
	})

	It("is called through the Service of the bundle", func(ctx SpecContext) {
		configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		Expect(admin.Get(ctx, types.NamespacedName{Name: "shared-quota"}, configuration)).To(Succeed())
		for _, webhook := range configuration.Webhooks {
			Expect(webhook.ClientConfig.Service).To(HaveField("Namespace", namespace))
			service := types.NamespacedName{Namespace: namespace, Name: webhook.ClientConfig.Service.Name}
			Expect(admin.Get(ctx, service, &corev1.Service{})).To(Succeed())
		}
	})

	It("shows what is used, to administrators and in the namespaces", func(ctx SpecContext) {
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(quota), quota)).To(Succeed())
			g.Expect(quota.Status.Summary).To(ContainSubstring("services.loadbalancers: 2/2"))
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(view), view)).To(Succeed())
			g.Expect(view.Status.Summary).To(ContainSubstring("services.loadbalancers: 2/2"))
			used := view.Status.Used["services.loadbalancers"]
			g.Expect(used.Value()).To(BeEquivalentTo(1))
		}).Should(Succeed())
	})

	It("writes views and ledgers alone, once what stands beside the bundle is applied", func(ctx SpecContext) {
		for _, object := range []client.Object{view, ledger} {
			Expect(admin.Patch(ctx, object, suite.Merge(`{"metadata":{"labels":{"mine":"yes"}}}`))).To(suite.BeProtected())
		}
	})

	It("gives back what is deleted", func(ctx SpecContext) {
		Expect(admin.Delete(ctx, balancer(shop, "first"))).To(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return admin.Create(ctx, balancer(books, "third")) }).Should(Succeed())
		// What no leader has seen before it is deleted keeps its charge for a while.
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(ledger), ledger)).To(Succeed())
			g.Expect(ledger.Entries.Reservations).To(BeEmpty())
		}).Should(Succeed())
	})

	It("goes on with one replica less", func(ctx SpecContext) {
		Expect(replicas.Running).To(HaveLen(2))
		replicas.Stop(replicas.Running[0])
		Eventually(ctx, func(ctx context.Context) error { return admin.Delete(ctx, balancer(books, "third")) }).Should(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return admin.Create(ctx, balancer(shop, "fourth")) }).Should(Succeed())
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(view), view)).To(Succeed())
			used := view.Status.Used["services.loadbalancers"]
			g.Expect(used.Value()).To(BeEquivalentTo(1))
		}).Should(Succeed())
	})

	It("leaves nothing of a quota that is deleted", func(ctx SpecContext) {
		Expect(admin.Delete(ctx, quota)).To(Succeed())
		for _, object := range []client.Object{quota, ledger, view} {
			Eventually(ctx, suite.Gone(admin, object)).Should(BeTrue())
		}
		Eventually(ctx, func(ctx context.Context) error { return admin.Create(ctx, balancer(shop, "fifth")) }).Should(Succeed())
	})

	// Last: of all that came before.
	It("was never forbidden anything", func() {
		Expect(audit.Forbidden(time.Time{})).To(BeEmpty())
		for _, replica := range replicas.Running {
			Expect(suite.LogOf(replica.Process)).NotTo(ContainSubstring("forbidden"))
			Expect(suite.LogOf(replica.Process)).To(ContainSubstring("Asked what this API server serves"))
		}
	})
}

func balancer(namespace, name string) *corev1.Service {
	return builders.Service(namespace, name).Type(corev1.ServiceTypeLoadBalancer, 80).Obj()
}
