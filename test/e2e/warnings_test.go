// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"io"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

var openShiftQuota = schema.GroupVersionKind{Group: "quota.openshift.io", Version: "v1", Kind: "ClusterResourceQuota"}

var _ = Describe("The author of a quota", func() {
	It("is told nothing of a quota that makes sense", func(ctx SpecContext) {
		team := newTeam()
		team.namespace(ctx)
		quota := team.quota().Hard("pods", "1").Hard("requests.cpu", "2").Hard("count/widgets.example.com", "1").
			Hard("count/deployments.apps", "1").Hard("requests.vendor.example/gpu", "1").Obj()
		Expect(kubectlApply(ctx, quota)).To(BeEmpty())
	})

	It("is warned of a selector that selects nothing, and not again while it isn't changed", func(ctx SpecContext) {
		team := newTeam()
		quota := team.quota().Hard("pods", "2").Obj()
		idle := "Warning: spec.selector selects no namespace (team=" + team.name + "): nothing is limited until one matches; " +
			"label namespaces, or correct the selector\n"
		Expect(kubectlApply(ctx, quota)).To(Equal(idle))
		Expect(kubectlApply(ctx, quota)).To(BeEmpty(), "applied again")
		Expect(kubectl(ctx, nil, "label", "crq", quota.Name, "reviewed=yes")).To(BeEmpty(), "labelled")
		Expect(kubectlPatch(ctx, quota, `{"spec":{"quota":{"hard":{"pods":"3"}}}}`)).To(BeEmpty(), "a limit changed")

		By("selecting something else that isn't there")
		Expect(kubectlPatch(ctx, quota, `{"spec":{"selector":{"labels":{"matchLabels":{"stage":"dev"}}}}}`)).To(
			Equal(strings.Replace(idle, "(team=", "(stage=dev,team=", 1)))
	})

	It("is warned of protected namespaces", func(ctx SpecContext) {
		name := newTeam().name
		quota := builders.Quota(name).LabelIn("kubernetes.io/metadata.name", "kube-system", "kube-public", "default").
			Hard("pods", "100").Obj()
		Expect(kubectlApply(ctx, quota)).To(Equal("Warning: spec.selector selects protected namespaces, where nothing is ever " +
			"refused: exclude kube-public, kube-system, such as by the label kubernetes.io/metadata.name\n"))
	})

	It("is warned of a limit below what is used, and nothing is evicted", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "5"))
		namespace := team.namespace(ctx)
		for _, name := range []string{"p1", "p2"} {
			mustCreate(ctx, builders.Pod(namespace, name).Obj())
		}
		eventuallyUses(ctx, quota, "pods=2")

		Expect(kubectlPatch(ctx, quota, `{"spec":{"quota":{"hard":{"pods":"1"}}}}`)).To(
			Equal("Warning: spec.quota.hard is below what is used (pods: 2/1): no more is admitted until less is used; " +
				"delete something, or raise the limit\n"))
		Expect(podsOf(ctx, []string{namespace})).To(HaveLen(2))
		waitUntilEnforced(ctx, quota)
		Expect(kubectlPatch(ctx, quota, `{"spec":{"quota":{"hard":{"pods":"2"}}}}`)).To(BeEmpty(), "as much as is used")
	})

	It("is warned of names that limit nothing, and only of new ones", func(ctx SpecContext) {
		team := newTeam()
		team.namespace(ctx)
		quota := team.quota().Hard("pods", "1").Hard("count/gizmos.example.com", "1").Hard("count/nodes", "1").
			Hard("vendor.example/gpu", "1").Obj()
		Expect(kubectlApply(ctx, quota)).To(Equal(
			"Warning: Kubernetes keeps no quota on vendor.example/gpu: correct spec.quota.hard; an extended resource is " +
				"requests.DOMAIN/NAME, a count is count/RESOURCE.GROUP\n" +
				"Warning: the cluster doesn't serve what is limited by count/gizmos.example.com: correct spec.quota.hard, " +
				"or install its CustomResourceDefinition\n" +
				"Warning: count/nodes can't be limited, for its objects live outside of namespaces: remove it from spec.quota.hard\n"))
		Expect(kubectlPatch(ctx, quota, `{"spec":{"quota":{"hard":{"count/gizmos.example.com":"2","secrets":"1"}}}}`)).To(BeEmpty())
	})

	It("is told nothing of what comes with the quota: its namespace, and the definition of what it limits", func(ctx SpecContext) {
		team := newTeam()
		contraption := schema.GroupVersionKind{Group: "contraptions.example.com", Version: "v1", Kind: "Contraption"}
		definition := builders.CustomResource(contraption, "contraptions")
		namespace := builders.Namespace(team.nextName()).Label(teamLabel, team.name).Obj()
		quota := team.quota().Hard("count/contraptions.contraptions.example.com", "1").Obj()
		Expect(kubectlApply(ctx, namespace, definition, quota)).To(BeEmpty())
	})

	It("is warned of OpenShift's quota of the same name, where that selects the same namespaces", func(ctx SpecContext) {
		team, other := newTeam(), newTeam()
		namespace := team.namespace(ctx)
		other.namespace(ctx)
		serveOpenShiftQuotas(ctx)
		createOpenShiftQuota(ctx, team.name, team.name)
		createOpenShiftQuota(ctx, other.name, team.name)

		Expect(kubectlApply(ctx, team.quota().Hard("pods", "1").Obj())).To(Equal(
			"Warning: OpenShift's ClusterResourceQuota of the same name selects " + namespace + " too: both limit what is there; " +
				"delete that one once this one is enforced\n"))
		Expect(kubectlApply(ctx, other.quota().Hard("pods", "1").Obj())).To(BeEmpty(), "it selects other namespaces")
	})

	It("is warned in a dry run too", func(ctx SpecContext) {
		quota := newTeam().quota().Hard("pods", "1").Obj()
		Expect(kubectl(ctx, manifest(quota), "apply", "-f", "-", "--dry-run=server")).To(HavePrefix("Warning: spec.selector selects no namespace "))
	})

	It("is told why it is refused, and nothing else", func(ctx SpecContext) {
		result, err := cluster.Kubectl(ctx, manifest(newTeam().quota().Hard("pods", "500m").Obj()), "apply", "-f", "-")
		Expect(err).NotTo(HaveOccurred())
		Expect(result.ExitCode).NotTo(Equal(0))
		Expect(result.Stderr).To(And(ContainSubstring("must be an integer"), Not(ContainSubstring("Warning"))))
	})
})

// kubectlApply applies objects with one call of kubectl, which must succeed, and
// returns what it says on its standard error. They are deleted with the spec.
func kubectlApply(ctx context.Context, objects ...client.Object) string {
	GinkgoHelper()
	for _, object := range objects {
		DeferCleanup(deleteIfThere, object)
	}
	return kubectl(ctx, manifest(objects...), "apply", "-f", "-")
}

// kubectlPatch is kubectlApply for a merge patch.
func kubectlPatch(ctx context.Context, quota *quotav1.ClusterResourceQuota, patch string) string {
	GinkgoHelper()
	return kubectl(ctx, nil, "patch", "crq", quota.Name, "--type=merge", "--patch", patch)
}

// kubectl runs what must succeed, and returns what it says on its standard error.
func kubectl(ctx context.Context, stdin io.Reader, args ...string) string {
	GinkgoHelper()
	result, err := cluster.Kubectl(ctx, stdin, args...)
	Expect(err).NotTo(HaveOccurred())
	Expect(result.ExitCode).To(Equal(0), result.Stderr)
	return result.Stderr
}

// manifest has the objects as a person would write them: without a status.
func manifest(objects ...client.Object) io.Reader {
	GinkgoHelper()
	var documents []string
	for _, object := range objects {
		kind, err := api.GroupVersionKindFor(object)
		Expect(err).NotTo(HaveOccurred())
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		Expect(err).NotTo(HaveOccurred())
		delete(fields, "status")
		fields["apiVersion"], fields["kind"] = kind.ToAPIVersionAndKind()
		document, err := yaml.Marshal(fields)
		Expect(err).NotTo(HaveOccurred())
		documents = append(documents, string(document))
	}
	return strings.NewReader(strings.Join(documents, "---\n"))
}

// serveOpenShiftQuotas lets the cluster serve OpenShift's quotas for a spec.
func serveOpenShiftQuotas(ctx context.Context) {
	GinkgoHelper()
	definition := builders.CustomResource(openShiftQuota, "clusterresourcequotas")
	definition.Spec.Scope = apiextensionsv1.ClusterScoped
	DeferCleanup(deleteIfThere, mustCreate(ctx, definition))
	Eventually(ctx, func(ctx context.Context) error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(openShiftQuota)
		return api.List(ctx, list)
	}).Should(Succeed())
}

// createOpenShiftQuota creates a quota that goes with its definition.
func createOpenShiftQuota(ctx context.Context, name, team string) {
	GinkgoHelper()
	quota := builders.Custom(openShiftQuota, "", name)
	quota.Object["spec"] = map[string]any{
		"selector": map[string]any{"labels": map[string]any{"matchLabels": map[string]any{teamLabel: team}}},
		"quota":    map[string]any{"hard": map[string]any{"pods": "1"}},
	}
	mustCreate(ctx, quota)
}
