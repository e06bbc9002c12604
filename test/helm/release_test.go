// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

var strict = client.FieldValidation(metav1.FieldValidationStrict)

const (
	// oldObject is part of the release before alone, and newObject of this one.
	oldObject, newObject = "shared-quota-old", "shared-quota-operator"
	quotaName            = "payments"
	// quotas is the definition that the release before has an older version of; these are the others.
	quotas  = "clusterresourcequotas.quota.sharedquota.dev"
	views   = "localresourcequotas.quota.sharedquota.dev"
	ledgers = "quotaledgers.quota.sharedquota.dev"
)

var _ = Describe("A release of the chart", Ordered, func() {
	var running *suite.Replicas
	var began time.Time
	quota := &quotav1.ClusterResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: quotaName}}
	ledger := &quotav1.QuotaLedger{ObjectMeta: metav1.ObjectMeta{Name: quotaName}}
	view := &quotav1.LocalResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: quotaName}}
	definition := func(ctx context.Context) *unstructured.Unstructured {
		return parse(kubectl(ctx, "get", "crd", quotas, "-o", "yaml"))["CustomResourceDefinition/"+quotas]
	}
	added := []string{"properties", "spec", "properties", "preflight"}

	BeforeAll(func(ctx SpecContext) {
		began = time.Now()
		for _, name := range []string{"shop", "ledgers"} {
			Expect(admin.Create(ctx, builders.Namespace(name).Label("team", quotaName).Obj())).To(Succeed())
		}
	})

	AfterAll(func() {
		if running != nil {
			running.End()
		}
	})

	It("is installed by the command of the documentation, here the release before", func(ctx SpecContext) {
		older := before()
		var notes string
		for _, line := range commands(installation, withHelm) {
			notes += cli.shell(ctx, older, line)
		}
		Expect(notes).To(ContainSubstring("STATUS: deployed"))
		running = runDeployment(ctx, suite.Namespace)
		Expect(schemaOf(definition(ctx))).NotTo(havePath(added...))

		suite.Kubelet(ctx, cluster, suite.Namespace)
		for _, line := range commandsOf(notes) {
			By(line)
			cli.shell(ctx, GinkgoT().TempDir(), line)
		}
	})

	It("enforces the first quota of its notes", func(ctx SpecContext) {
		for _, one := range []client.Object{balancer("shop", "first"), balancer("ledgers", "second")} {
			Expect(admin.Create(ctx, one)).To(Succeed())
		}
		Expect(admin.Create(ctx, balancer("ledgers", "third"))).To(beFull())
	})

	It("is upgraded by the command of the documentation, with its definitions, and goes on meanwhile", func(ctx SpecContext) {
		cli.shell(ctx, suite.RepositoryRoot(), command(upgrade, "Upgrade with Helm", "helm upgrade "))
		Expect(schemaOf(definition(ctx))).To(havePath(added...))
		Expect(admin.Get(ctx, client.ObjectKey{Name: newObject}, &flowcontrolv1.FlowSchema{})).To(Succeed())
		old := client.ObjectKey{Namespace: suite.Namespace, Name: oldObject}
		Expect(admin.Get(ctx, old, &corev1.ConfigMap{})).To(Satisfy(apierrors.IsNotFound))

		running.Roll(ctx, func() { Expect(admin.Create(ctx, balancer("ledgers", "third"))).To(beFull()) })
		Expect(admin.Patch(ctx, quota, suite.Merge(`{"spec":{"preflight":"Off"}}`))).To(Succeed())
		Expect(suite.WaitUntilEnforced(ctx, admin, quotaName).Spec.Preflight).To(Equal(quotav1.PreflightOff), "the new definition keeps it")
	})

	It("goes back by the command of the documentation, and forth again", func(ctx SpecContext) {
		cli.shell(ctx, suite.RepositoryRoot(), command(upgrade, "Rollback with Helm", "helm upgrade "))
		Expect(schemaOf(definition(ctx))).To(havePath(added...), "the newer definitions stay")
		running.Roll(ctx, func() { Expect(admin.Create(ctx, balancer("ledgers", "third"))).To(beFull()) })
		cli.shell(ctx, suite.RepositoryRoot(), command(upgrade, "Upgrade with Helm", "helm upgrade "))
		running.Roll(ctx, func() { Expect(admin.Create(ctx, balancer("ledgers", "third"))).To(beFull()) })
	})

	It("gives the operator all rights that it needs", func() {
		Expect(audit.Forbidden(began)).To(BeEmpty())
	})

	It("is uninstalled while replicas run, and refuses nothing any more", func(ctx SpecContext) {
		Expect(configurationIsGone(ctx)).To(BeFalse())
		kept := cli.shell(ctx, suite.RepositoryRoot(), command(upgrade, "Removal with Helm", "helm uninstall "))
		Expect(configurationIsGone(ctx)).To(BeTrue(), "once helm returns")
		// The API server learns of it a moment later.
		Eventually(ctx, func(ctx context.Context) error { return admin.Create(ctx, balancer("ledgers", "third")) }).Should(Succeed())
		// The replicas would write it again if they could.
		for _, replica := range running.Running {
			Expect(replica.Done()).NotTo(BeClosed())
		}
		Consistently(ctx, configurationIsGone).WithTimeout(settle).Should(BeTrue())
		running.EndWithoutRights()
		running = nil
		Expect(configurationIsGone(ctx)).To(BeTrue())

		By("keeping the definitions, and with them quotas, ledgers and views")
		Expect(kept).To(ContainSubstring("kept due to the resource policy"))
		for _, object := range []client.Object{quota, ledger, view} {
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		}
		Expect(suite.Left(ctx, admin)).To(ConsistOf(
			"CustomResourceDefinition "+quotas, "CustomResourceDefinition "+views, "CustomResourceDefinition "+ledgers,
			"Lease shared-quota-operator", "Namespace shared-quota-system", "Secret shared-quota-webhook-cert",
		))
	})

	It("is installed again, and enforces the kept quotas", func(ctx SpecContext) {
		cli.shell(ctx, suite.RepositoryRoot(), command(installation, withHelm, "helm install "))
		running = runDeployment(ctx, suite.Namespace)
		// The condition is still that of the release before.
		Eventually(ctx, func(ctx context.Context) error {
			return admin.Create(ctx, balancer("ledgers", "fourth"), client.DryRunAll)
		}).
			Should(beOver())
		Expect(admin.Create(ctx, balancer("ledgers", "fourth"))).To(beOver())
	})

	It("leaves nothing once the documentation is followed to its end", func(ctx SpecContext) {
		for _, line := range commands(upgrade, "Removal with Helm") {
			By(line)
			cli.shell(ctx, suite.RepositoryRoot(), line)
			if running != nil && strings.HasPrefix(line, "helm uninstall ") {
				running.EndWithoutRights()
				running = nil
			}
		}
		Eventually(ctx, suite.Left).WithArguments(admin).Should(BeEmpty())
		Expect(admin.Create(ctx, balancer("ledgers", "fourth"))).To(Succeed())
	})
})

// before returns a directory with the chart of the release before: with an older definition, without
// an object that is new, and with one that isn't there any more.
func before() string {
	GinkgoHelper()
	root := GinkgoT().TempDir()
	chart := filepath.Join(root, chartDir)
	Expect(os.CopyFS(chart, os.DirFS(filepath.Join(suite.RepositoryRoot(), chartDir)))).To(Succeed())
	edit(chart, "Chart.yaml", "\nversion: ", "\nversion: 0.0.1 # not ")
	path := filepath.Join(chart, "files", "manifests.yaml")
	text, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	given := parse(string(text))
	unstructured.RemoveNestedField(schemaOf(given["CustomResourceDefinition/"+quotas]),
		"properties", "spec", "properties", "preflight")
	Expect(given).To(HaveKey("FlowSchema/" + newObject))
	delete(given, "FlowSchema/"+newObject)
	old := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
		"name": oldObject, "namespace": suite.Namespace, "labels": map[string]any{},
	}}}
	given["ConfigMap/"+oldObject] = old
	var documents []string
	for _, object := range given {
		document, err := yaml.Marshal(object.Object)
		Expect(err).NotTo(HaveOccurred())
		documents = append(documents, string(document))
	}
	Expect(os.WriteFile(path, []byte(strings.Join(documents, "---\n")), 0o600)).To(Succeed())
	return root
}

// schemaOf returns the schema of a definition's only version.
func schemaOf(definition *unstructured.Unstructured) map[string]any {
	GinkgoHelper()
	versions, ok := at(definition, "spec", "versions").([]any)
	Expect(ok).To(BeTrue())
	Expect(versions).To(HaveLen(1))
	version, ok := versions[0].(map[string]any)
	Expect(ok).To(BeTrue())
	schema, _, err := unstructured.NestedFieldNoCopy(version, "schema", "openAPIV3Schema")
	Expect(err).NotTo(HaveOccurred())
	fields, ok := schema.(map[string]any)
	Expect(ok).To(BeTrue())
	return fields
}

// havePath matches a map in which a path of fields leads to something.
func havePath(fields ...string) OmegaMatcher {
	return WithTransform(func(object map[string]any) bool {
		_, found, err := unstructured.NestedFieldNoCopy(object, fields...)
		return found && err == nil
	}, BeTrue())
}
