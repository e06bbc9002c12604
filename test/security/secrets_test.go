// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// What config/default is without the right to read Secrets.
const (
	allLine = "- reader_all_role.yaml\n"
	// kustomizationFile is where kustomize looks for a kustomization.
	kustomizationFile = "kustomization.yaml"
)

// configuration copies config/ into a directory of its own, and returns that.
func configuration() string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	Expect(os.CopyFS(filepath.Join(dir, "config"), os.DirFS(filepath.Join(suite.RepositoryRoot(), "config")))).To(Succeed())
	return dir
}

// withoutLine is the kustomization for whom the one line of config/rbac is left out.
func withoutLine() string {
	GinkgoHelper()
	dir := configuration()
	path := filepath.Join(dir, "config", "rbac", kustomizationFile)
	whole, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	Expect(strings.Count(string(whole), allLine)).To(Equal(1), "%s", whole)
	Expect(os.WriteFile(path, []byte(strings.Replace(string(whole), allLine, "", 1)), 0o600)).To(Succeed())
	return filepath.Join(dir, "config", "default")
}

// withPatch is the kustomization that docs/security.md gives.
func withPatch() string {
	GinkgoHelper()
	dir := configuration()
	page, err := os.ReadFile(filepath.Join(suite.RepositoryRoot(), "docs", "security.md"))
	Expect(err).NotTo(HaveOccurred())
	blocks := strings.Split(string(page), "```")
	patch := slices.IndexFunc(blocks, func(block string) bool { return strings.Contains(block, "$patch: delete") })
	Expect(patch).NotTo(Equal(-1))
	Expect(os.WriteFile(filepath.Join(dir, kustomizationFile), []byte(strings.TrimPrefix(blocks[patch], "yaml")), 0o600)).To(Succeed())
	return dir
}

var _ = Describe("The operator, without the right to read Secrets", Label("rights"), Ordered, func() {
	var kustomization string
	var began time.Time

	BeforeAll(func(ctx SpecContext) {
		kustomization = withoutLine()
		end(ctx)
		suite.InstallFrom(ctx, cluster, kustomization)
		suite.Kubectl(ctx, cluster, "delete", "--ignore-not-found", "clusterrolebinding", "shared-quota-reader-all-rolebinding")
		began = time.Now()
		runAsInstalled(ctx)
		DeferCleanup(end)
		for _, team := range []string{"plain", "secretive"} {
			mustCreate(ctx, builders.Namespace(team).Label("team", team).Obj())
			awaitRootCA(ctx, team)
		}
	})

	It("has the rights that the patch in the documentation leaves it", func(ctx SpecContext) {
		Expect(suite.Kubectl(ctx, cluster, "kustomize", withPatch())).To(Equal(suite.Kubectl(ctx, cluster, "kustomize", kustomization)))
	})

	DescribeTable("may not", func(ctx SpecContext, asked authorizationv1.ResourceAttributes) {
		for _, asked.Verb = range []string{"get", "list", "watch"} {
			Expect(may(ctx, asked)).To(BeFalse(), asked.Verb)
		}
	},
		Entry("read all Secrets", authorizationv1.ResourceAttributes{Resource: "secrets"}),
		Entry("read a namespace's Secrets", authorizationv1.ResourceAttributes{Resource: "secrets", Namespace: "plain"}),
		Entry("read the other Secrets of its own namespace", authorizationv1.ResourceAttributes{Resource: "secrets", Namespace: suite.Namespace}),
		Entry("read custom resources", authorizationv1.ResourceAttributes{Group: widget.Group, Resource: "widgets"}),
	)

	It("counts every kind of Kubernetes' own that lives in namespaces, but Secrets", func(ctx SpecContext) {
		countAll(ctx, slices.DeleteFunc(listable(ctx), func(name corev1.ResourceName) bool { return name == secrets || name == widgets }))
	})

	It("enforces a quota that names no Secrets, and lets them be created", func(ctx SpecContext) {
		quota := builders.Quota("plain").Label("team", "plain").Hard("pods", "1").Hard("configmaps", "2").Hard("services", "1").
			Hard("persistentvolumeclaims", "1").Hard("count/deployments.apps", "1").Obj()
		mustCreate(ctx, quota)
		suite.WaitUntilEnforced(ctx, admin, quota.Name)
		for resource, object := range map[string]func(name string) client.Object{
			"pods":                   func(name string) client.Object { return builders.Pod("plain", name).Obj() },
			"configmaps":             func(name string) client.Object { return builders.ConfigMap("plain", name) },
			"services":               func(name string) client.Object { return builders.Service("plain", name).Obj() },
			"persistentvolumeclaims": func(name string) client.Object { return builders.VolumeClaim("plain", name).Obj() },
			"count/deployments.apps": func(name string) client.Object { return builders.Deployment("plain", name, 0) },
		} {
			mustCreate(ctx, object("first"))
			Expect(admin.Create(ctx, object("second"))).To(suite.BeExceeded("plain", resource))
			Expect(admin.Delete(ctx, object("first"), client.GracePeriodSeconds(0))).To(Succeed())
			mustCreate(ctx, object("second"))
		}
		mustCreate(ctx, builders.Secret("plain", "mine"), builders.Custom(widget, "plain", "mine"))
		Expect(suite.WaitUntilEnforced(ctx, admin, quota.Name)).To(beCountable())
	})

	It("refuses what it can't count under a quota that names it, says what to do, and enforces the rest", func(ctx SpecContext) {
		quota := builders.Quota("secretive").Label("team", "secretive").Hard("secrets", "5").Hard(widgets, "5").Hard("pods", "1").Obj()
		mustCreate(ctx, quota)
		Eventually(ctx, suite.Quota(admin, quota.Name)).Should(And(
			suite.HaveCondition(quotav1.ConditionResourceUnavailable, MatchRegexp("^True NotWatchable: "+
				unreadable("secrets", "")+".*; "+unreadable("widgets", widget.Group))),
			suite.HaveCondition(quotav1.ConditionEnforced, HavePrefix("True ")),
			suite.HaveCondition(quotav1.ConditionReady, HavePrefix("False Counting: some resources are not counted yet ("+string(widgets)+", secrets), "))))

		mustCreate(ctx, builders.Pod("secretive", "first").Obj())
		Expect(admin.Create(ctx, builders.Pod("secretive", "second").Obj())).To(suite.BeExceeded("secretive", "pods"))
		Eventually(ctx, suite.Used(admin, "secretive", "pods")).Should(Equal("1"))
		Expect(admin.Create(ctx, builders.Secret("secretive", "mine"))).To(suite.BeUncounted("secretive", "secrets"))
		Expect(admin.Create(ctx, builders.Custom(widget, "secretive", "mine"))).To(suite.BeUncounted("secretive", string(widgets)))
		mustCreate(ctx, builders.Secret("plain", "another"))
	})

	It("is forbidden nothing else that it asks for", func() {
		refused := audit.Forbidden(began)
		Expect(refused).To(ContainElement(HaveField("String()", "list secrets. /")))
		Expect(slices.DeleteFunc(refused, func(r suite.Request) bool {
			return (r.Resource == "secrets" || r.Resource == "widgets") && (r.Verb == "list" || r.Verb == "watch")
		})).To(BeEmpty())
	})

	// Last: what the condition tells to do.
	It("counts them once it is given the right", func(ctx SpecContext) {
		suite.Install(ctx, cluster)
		Expect(suite.WaitUntilEnforced(ctx, admin, "secretive")).To(beCountable())
		mustCreate(ctx, builders.Secret("secretive", "mine"), builders.Custom(widget, "secretive", "mine"))
	})
})

// awaitRootCA waits for the ConfigMap that Kubernetes makes in each namespace.
func awaitRootCA(ctx context.Context, namespace string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) error {
		return admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "kube-root-ca.crt"}, &corev1.ConfigMap{})
	}).Should(Succeed())
}

// unreadable is the pattern of what a condition says of a resource that the operator may not read, and of the right
// to give it.
func unreadable(resource, group string) string {
	name := regexp.QuoteMeta(strings.TrimSuffix(resource+"."+group, "."))
	return name + " can't be listed or watched.*config/rbac/reader_all_role.yaml.*" + name + ` is forbidden: User "` + suite.User + `"`
}
