// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
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
		Expect(kubectlApply(ctx, quota)).To(And(
			HavePrefix("Warning: spec.selector selects protected namespaces"), ContainSubstring("exclude kube-public, kube-system,")))
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
			MatchRegexp(`^Warning: spec.quota.hard is below what is used: pods by 1 \(2/1\);.*\n$`))
		Expect(podsOf(ctx, []string{namespace})).To(HaveLen(2))
		waitUntilEnforced(ctx, quota)
		Expect(kubectlPatch(ctx, quota, `{"spec":{"quota":{"hard":{"pods":"2"}}}}`)).To(BeEmpty(), "as much as is used")
	})

	It("is warned of names that limit nothing, and only of new ones", func(ctx SpecContext) {
		team := newTeam()
		team.namespace(ctx)
		quota := team.quota().Hard("pods", "1").Hard("count/gizmos.example.com", "1").Hard("count/nodes", "1").
			Hard("vendor.example/gpu", "1").Hard("count/jobs", "1").Obj()
		Expect(kubectlApply(ctx, quota)).To(MatchRegexp(
			`^Warning: names in spec.quota.hard that limit nothing: count/nodes \(.+\), ` +
				`vendor.example/gpu \(write requests.vendor.example/gpu\), count/jobs \(write count/jobs.batch\);.*\n` +
				`Warning: the cluster doesn't serve what is limited by count/gizmos.example.com:.*\n$`))
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

		Expect(kubectlApply(ctx, team.quota().Hard("pods", "1").Obj())).To(
			HavePrefix("Warning: OpenShift's ClusterResourceQuota of the same name selects " + namespace + " too: "))
		Expect(kubectlApply(ctx, other.quota().Hard("pods", "1").Obj())).To(BeEmpty(), "it selects other namespaces")
	})

	It("is told in a dry run what the quota would do, the worst first", func(ctx SpecContext) {
		team := newTeam()
		here, there := team.namespace(ctx), team.namespace(ctx)
		enforce(ctx, builders.Quota(team.nextName()).LabelIn("kubernetes.io/metadata.name", here).Hard("pods", "5"))
		for _, namespace := range []string{here, here, there} {
			mustCreate(ctx, builders.Pod(namespace, team.nextName()).Request("cpu", "300m").Obj())
		}
		mustCreate(ctx, builders.ConfigMap(there, "c"))
		quota := team.quota().Hard("pods", "1").Hard("requests.cpu", "800m").Hard("configmaps", "1").Hard("count/jobs", "1").Obj()
		dryRun := func() string {
			GinkgoHelper()
			return kubectl(ctx, manifest(quota), "apply", "-f", "-", "--dry-run=server")
		}
		Eventually(dryRun).Should(MatchRegexp(
			`^Warning: .*below what is used: pods by 2 \(3/1\), requests.cpu by 100m \(900m/800m\);.*\n` +
				`Warning: .*limit nothing: count/jobs .*\n` +
				`Warning: other quotas limit the same: \S+ \(pods in 1 namespace\);.*\n` +
				`Warning: spec.selector selects 2 namespaces: ` + here + `, ` + there + `\n$`))

		By("asking again after it was applied")
		Expect(kubectlApply(ctx, quota)).To(MatchRegexp(`^Warning: .*limit nothing: .*\n$`), "applied")
		Expect(dryRun()).To(BeEmpty(), "nothing changes")

		By("asking for a mode that refuses nothing")
		quota.Spec.Enforcement.Mode = quotav1.EnforcementWarn
		Expect(dryRun()).To(MatchRegexp(`^Warning: .*mode is Warn, which refuses nothing: .*\n$`))
	})

	It("is told within a second, though there are 5,000 namespaces", longest, func(ctx SpecContext) {
		many, _ := suite.Start(ctx, harness.Options{})
		_, err := many.StartOperator(ctx, harness.OperatorOptions{Binary: settings.Binary})
		Expect(err).NotTo(HaveOccurred())
		warned := &warnings{}
		config := many.Config()
		config.WarningHandlerWithContext = warned
		admin := suite.Client(config, deadline)
		creating := errgroup.Group{}
		creating.SetLimit(50)
		for i := range 5000 {
			creating.Go(func() error {
				name := fmt.Sprintf("n%04d", i)
				if err := admin.Create(ctx, builders.Namespace(name).Label(teamLabel, "many").Obj()); err != nil || i%8 != 0 {
					return err
				}
				return admin.Create(ctx, builders.ConfigMap(name, "c"))
			})
		}
		Expect(creating.Wait()).To(Succeed())
		Expect(admin.Create(ctx, builders.Quota("few").Label(teamLabel, "few").Hard("pods", "1").Obj())).To(Succeed())
		suite.WaitUntilEnforced(ctx, admin, "few")

		quota := builders.Quota("many").Label(teamLabel, "many").Hard("configmaps", "100").Hard("pods", "100").Obj()
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			warned.lines = nil
			began := time.Now()
			g.Expect(admin.Create(ctx, quota.DeepCopy(), client.DryRunAll)).To(Succeed())
			g.Expect(time.Since(began)).To(BeNumerically("<", time.Second))
			g.Expect(warned.lines).To(ConsistOf(
				ContainSubstring("configmaps by 525 (625/100)"), ContainSubstring("selects 5000 namespaces: n0000, n0001, ")))
		}).Should(Succeed())
	})

	It("is told why it is refused, and nothing else", func(ctx SpecContext) {
		result, err := cluster.Kubectl(ctx, manifest(newTeam().quota().Hard("pods", "500m").Obj()), "apply", "-f", "-")
		Expect(err).NotTo(HaveOccurred())
		Expect(result.ExitCode).NotTo(Equal(0))
		Expect(result.Stderr).To(And(ContainSubstring("must be an integer"), Not(ContainSubstring("Warning"))))
	})
})

// warnings keeps those of a client.
type warnings struct{ lines []string }

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.lines = append(w.lines, text)
}

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
