// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// elsewhere is another namespace than config/default's.
const elsewhere = "quota-elsewhere"

// resourcePolicy is the annotation by which Helm keeps an object.
const resourcePolicy = "helm.sh/resource-policy"

var _ = Describe("The chart", func() {
	DescribeTable("renders, object by object,",
		func(ctx SpecContext, kustomization, namespace, values string, edit func(config string)) {
			config := filepath.Join(GinkgoT().TempDir(), "config")
			Expect(os.CopyFS(config, os.DirFS(filepath.Join(suite.RepositoryRoot(), "config")))).To(Succeed())
			if edit != nil {
				edit(config)
			}
			want := parse(kubectl(ctx, "kustomize", filepath.Join(config, kustomization)))
			// Helm stores the release in the namespace, which must be there before.
			Expect(want).To(HaveKey("Namespace/" + namespace))
			delete(want, "Namespace/"+namespace)
			for name, object := range want { // kubectl gives them one, and the API server drops it
				if strings.HasPrefix(name, "ValidatingAdmissionPolicy") {
					unstructured.RemoveNestedField(object.Object, "metadata", "namespace")
				}
			}

			got, hooks := render(ctx, namespace, values)
			Expect(keepers(got)).To(HaveLen(3))
			Expect(cmp.Diff(want, got)).To(BeEmpty(), "(-config,+chart)")
			Expect(hooks).To(HaveLen(1))
		},
		Entry("what config/default does", "default", suite.Namespace, "", nil),
		Entry("without the rights to wake, what config/no-wake does", "no-wake", suite.Namespace, "rights: {wake: false}", nil),
		Entry("with monitoring, what config/default does with config/prometheus", "default", suite.Namespace,
			"monitoring: {serviceMonitor: true, alerts: true, dashboard: true}", func(config string) {
				edit(config, "default/kustomization.yaml", "# - ../prometheus", "- ../prometheus")
			}),
		Entry("without the right to read everything, what config/default does without a line of config/rbac", "default",
			suite.Namespace, "rights: {readAll: false}", func(config string) {
				edit(config, "rbac/kustomization.yaml", "- reader_all_role.yaml\n", "")
			}),
	)

	It("passes helm lint --strict", func(ctx SpecContext) {
		Expect(cli.run(ctx, "", "lint", "--strict", chartDir)).To(ContainSubstring("0 chart(s) failed"))
	})

	It("renders the same from its package", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		cli.run(ctx, "", "package", chartDir, "--destination", dir)
		packages, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
		Expect(err).NotTo(HaveOccurred())
		Expect(packages).To(HaveLen(1))
		packed := cli.run(ctx, "", "template", "shared-quota", packages[0], "--namespace", suite.Namespace)
		want, _ := render(ctx, suite.Namespace, "")
		got := parse(packed)
		for name, object := range got {
			if object.GetAnnotations()["helm.sh/hook"] != "" {
				delete(got, name)
			}
		}
		Expect(cmp.Diff(want, got)).To(BeEmpty(), "(-directory,+package)")
	})
})

// edit replaces text of a file, which it must have.
func edit(dir, name, old, replacement string) {
	GinkgoHelper()
	path := filepath.Join(dir, name)
	text, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	Expect(string(text)).To(ContainSubstring(old), name)
	Expect(os.WriteFile(path, []byte(strings.ReplaceAll(string(text), old, replacement)), 0o600)).To(Succeed())
}

// keepers takes the annotation by which Helm keeps an object off the CustomResourceDefinitions, and
// returns the objects that had it. No other object may have it.
func keepers(rendered objects) []*unstructured.Unstructured {
	GinkgoHelper()
	var kept []*unstructured.Unstructured
	for name, object := range rendered {
		annotations := object.GetAnnotations()
		policy, ok := annotations[resourcePolicy]
		if !ok {
			continue
		}
		Expect(name).To(HavePrefix("CustomResourceDefinition/"))
		Expect(policy).To(Equal("keep"))
		delete(annotations, resourcePolicy)
		object.SetAnnotations(annotations)
		kept = append(kept, object)
	}
	return kept
}

// at returns of an object what a path of fields leads to.
func at(object *unstructured.Unstructured, fields ...string) any {
	GinkgoHelper()
	Expect(object).NotTo(BeNil())
	value, _, err := unstructured.NestedFieldNoCopy(object.Object, fields...)
	Expect(err).NotTo(HaveOccurred())
	return value
}
