// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// chosen are values that differ from the defaults.
const chosen = `
replicas: 1
certificates: {secretName: issued}
protectedNamespaces: [guarded]
rights: {wake: false, readAll: false}
flags: {status-interval: 200ms, failure-policy: Ignore}
`

var _ = Describe("A release in another namespace, with other values", Ordered, func() {
	var running *suite.Replicas
	var authority []byte
	var began time.Time

	BeforeAll(func(ctx SpecContext) {
		began = time.Now()
		for _, object := range []client.Object{
			builders.Namespace(elsewhere).Obj(), builders.Namespace("far").Label("team", "far").Obj(),
			builders.Namespace("guarded").Label("team", "far").Obj(),
		} {
			Expect(admin.Create(ctx, object)).To(Succeed())
		}
		var dir string
		authority, dir = issue(ctx)
		cli.run(ctx, chosen, "install", "shared-quota", chartDir, "--namespace", elsewhere, "--values", "-")
		running = runDeployment(ctx, elsewhere, "--cert-dir="+dir)
		Expect(running.Running).To(HaveLen(1))
		quota := builders.Quota("far").Label("team", "far").Hard("services.loadbalancers", "1").Obj()
		Expect(admin.Create(ctx, quota)).To(Succeed())
		suite.WaitUntilEnforced(ctx, admin, "far")
	})

	AfterAll(func(ctx SpecContext) {
		if running != nil {
			running.End()
		}
		remove(ctx, elsewhere)
	})

	It("enforces a quota, except in the namespace that is protected", func(ctx SpecContext) {
		Expect(admin.Create(ctx, balancer("far", "first"))).To(Succeed())
		Expect(admin.Create(ctx, balancer("far", "second"))).To(suite.BeExceeded("far", "services.loadbalancers"))
		Expect(admin.Create(ctx, balancer("guarded", "second"))).To(Succeed())
	})

	It("is called through its Service, with its own certificate and by its flags", func(ctx SpecContext) {
		configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		Expect(admin.Get(ctx, client.ObjectKey{Name: "shared-quota"}, configuration)).To(Succeed())
		Expect(configuration.Webhooks).NotTo(BeEmpty())
		var policies []admissionregistrationv1.FailurePolicyType
		for _, webhook := range configuration.Webhooks {
			Expect(webhook.ClientConfig.Service).To(HaveField("Namespace", elsewhere))
			Expect(webhook.ClientConfig.CABundle).To(Equal(authority))
			policies = append(policies, *webhook.FailurePolicy)
		}
		Expect(policies).To(ContainElement(admissionregistrationv1.Ignore))
		key := client.ObjectKey{Namespace: elsewhere, Name: suite.CertSecret}
		Expect(admin.Get(ctx, key, &corev1.Secret{})).To(Satisfy(apierrors.IsNotFound), "the operator makes no certificate")
	})

	It("is the only one that writes ledgers", func(ctx SpecContext) {
		ledger := &quotav1.QuotaLedger{ObjectMeta: metav1.ObjectMeta{Name: "far"}}
		Expect(admin.Patch(ctx, ledger, suite.Merge(`{"metadata":{"labels":{"mine":"yes"}}}`))).To(suite.BeProtected())
	})

	It("has all rights that it needs, and may list no Secrets of others and wake nothing", func(ctx SpecContext) {
		Expect(audit.Forbidden(began)).To(BeEmpty())
		user := "system:serviceaccount:" + elsewhere + ":" + suite.ServiceAccount
		as := suite.Client(cluster.As(user, "system:serviceaccounts", "system:authenticated"), suite.Deadline)
		Expect(as.List(ctx, &corev1.SecretList{}, client.InNamespace("far"))).To(Satisfy(apierrors.IsForbidden))
		Expect(as.List(ctx, &corev1.ServiceList{}, client.InNamespace("far"))).To(Succeed())
		controller := &corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Namespace: "far", Name: "one"}}
		Expect(as.Status().Patch(ctx, controller, suite.Merge(`{}`))).To(Satisfy(apierrors.IsForbidden))
	})

	It("is refused a second time in the cluster", func(ctx SpecContext) {
		_, stderr, err := cli.try(ctx, "", "install", "another", chartDir, "--namespace", "far")
		Expect(err).To(HaveOccurred())
		Expect(stderr).To(And(ContainSubstring("cannot be imported into the current release"), ContainSubstring("shared-quota")))
	})
})

var _ = Describe("What kustomize installed", Ordered, func() {
	It("is taken over as the documentation says", func(ctx SpecContext) {
		page, err := os.ReadFile(filepath.Join(suite.RepositoryRoot(), installation))
		Expect(err).NotTo(HaveOccurred())
		const options = "--take-ownership --force-conflicts"
		Expect(string(page)).To(ContainSubstring("add `" + options + "`"))
		suite.Install(ctx, cluster)
		DeferCleanup(remove, suite.Namespace)
		running := runDeployment(ctx, suite.Namespace)
		defer running.End()

		cli.shell(ctx, suite.RepositoryRoot(), command(installation, withHelm, "helm install ")+" "+options)
		running.Roll(ctx, func() {})
		Expect(running.Image()).To(Equal("registry.example/shared-quota-operator:v1"))
		cli.shell(ctx, suite.RepositoryRoot(), command(upgrade, "Upgrade with Helm", "helm upgrade "))
		Expect(configurationIsGone(ctx)).To(BeFalse())
	})
})

// issue makes a certificate for the Service of the chart, and puts it into the Secret that the values name
// and into a directory, where a kubelet would mount it.
func issue(ctx context.Context) (authority []byte, dir string) {
	GinkgoHelper()
	certificate, key, err := cert.GenerateSelfSignedCertKey(suite.WebhookService+"."+elsewhere+".svc", nil, nil)
	Expect(err).NotTo(HaveOccurred())
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: elsewhere, Name: "issued"}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": certificate},
	}
	Expect(admin.Create(ctx, secret)).To(Succeed())
	dir = GinkgoT().TempDir()
	for name, content := range secret.Data {
		Expect(os.WriteFile(filepath.Join(dir, name), content, 0o600)).To(Succeed())
	}
	return certificate, dir
}

// remove removes the release and all that it leaves.
func remove(ctx context.Context, namespace string) {
	GinkgoHelper()
	cli.run(ctx, "", "uninstall", "shared-quota", "--namespace", namespace)
	Expect(configurationIsGone(ctx)).To(BeTrue(), "though no replica runs")
	kubectl(ctx, "delete", "clusterresourcequotas", "--all", "--timeout=60s")
	kubectl(ctx, "delete", "crd", "--timeout=60s", quotas, views, ledgers)
	kubectl(ctx, "delete", "namespace", namespace, "--timeout=60s")
	Eventually(ctx, suite.Left).WithArguments(admin).Should(BeEmpty())
}
