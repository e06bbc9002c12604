// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// What the whole suite shares.
var (
	cluster *harness.Cluster
	// admin is a member of system:masters, whom RBAC doesn't ask.
	admin client.WithWatch
	// audit has what the operator asks for.
	audit suite.Audit
	// scraper is the token of a ServiceAccount that may read metrics.
	scraper string
	// binary is the operator.
	binary string
	// recipe is the directory with what docs/security.md makes for the API server.
	recipe string

	// replicas are those that run, if any, and runningArgs what was added to the Deployment's arguments.
	replicas    *suite.Replicas
	runningArgs []string
)

var (
	widget         = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	openShiftQuota = schema.GroupVersionKind{Group: "quota.openshift.io", Version: "v1", Kind: "ClusterResourceQuota"}
)

// devicesSince is the version of Kubernetes that brought ResourceClaims.
const devicesSince = "1.34"

func TestMain(m *testing.M) {
	os.Exit(harness.InNamespace(m.Run))
}

func TestSecurity(t *testing.T) {
	suite.Run(t, "Who may do what", suite.BuildTimeout+20*time.Minute)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	built := suite.Async(ctx, suite.Operator)
	var flags map[string]string
	audit, flags = suite.NewAudit(suite.User)
	maps.Copy(flags, everythingServed(ctx))
	recipe = followRecipe(ctx)
	flags["admission-control-config-file"] = filepath.Join(recipe, "admission.yaml")
	cluster, admin = suite.Start(ctx, harness.Options{CRDDirs: []string{}, Production: true, APIServerFlags: flags})
	suite.StartControllers(ctx, cluster)
	suite.Install(ctx, cluster)
	defineTypes(ctx)
	scraper = suite.Scraper(ctx, cluster)
	binary = <-built
	DeferCleanup(end)
}, NodeTimeout(suite.BuildTimeout))

// everythingServed returns the flags by which the API server serves the kinds in namespaces, too, that
// Kubernetes doesn't serve unless it is told to: the operator must be able to count them.
func everythingServed(ctx context.Context) map[string]string {
	GinkgoHelper()
	flags := map[string]string{"runtime-config": "api/all=true"}
	if suite.IsSince(ctx, "1.37") {
		flags["feature-gates"] = "EvictionRequestAPI=true,GenericWorkload=true"
	}
	return flags
}

// defineTypes lets the cluster serve a custom resource and OpenShift's quotas.
func defineTypes(ctx context.Context) {
	GinkgoHelper()
	openShift := builders.CustomResource(openShiftQuota, "clusterresourcequotas")
	openShift.Spec.Scope = apiextensionsv1.ClusterScoped
	mustCreate(ctx, builders.CustomResource(widget, "widgets"), openShift)
	suite.Kubectl(ctx, cluster, "wait", "--for=condition=established", "--timeout=60s", "crd", "--all")
	if suite.IsSince(ctx, devicesSince) {
		mustCreate(ctx, builders.DeviceClassOffering("gpu", "dra.example/gpu"))
	}
}

// run has replicas run by what config/default installs, with further arguments. Each container that needs them calls
// it, because another one may have ended or removed them.
func run(ctx context.Context, args ...string) {
	GinkgoHelper()
	if replicas != nil && slices.Equal(args, runningArgs) {
		return
	}
	end(ctx)
	suite.Install(ctx, cluster)
	runAsInstalled(ctx, args...)
}

// runAsInstalled is run with what is installed already.
func runAsInstalled(ctx context.Context, args ...string) {
	GinkgoHelper()
	replicas = suite.RunReplicas(ctx, cluster, suite.Namespace, func(string) string { return binary },
		append([]string{"--status-interval=100ms"}, args...)...)
	runningArgs = args
}

// end ends the replicas and takes their webhooks back: what nobody answers is refused.
func end(ctx context.Context) {
	GinkgoHelper()
	if replicas == nil {
		return
	}
	replicas.End()
	replicas = nil
	Expect(client.IgnoreNotFound(admin.Delete(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "shared-quota"},
	}))).To(Succeed())
}

func mustCreate(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	suite.Create(ctx, admin, objects...)
}

// enforced creates a quota, and returns once it is enforced.
func enforced(ctx context.Context, quota *builders.QuotaBuilder) {
	GinkgoHelper()
	mustCreate(ctx, quota.Obj())
	suite.WaitUntilEnforced(ctx, admin, quota.Obj().Name)
}

// as returns the client of a user, who has the rights of admin if they are in system:masters.
func as(user string, groups ...string) client.WithWatch {
	GinkgoHelper()
	return suite.Client(cluster.As(user, groups...), suite.Deadline)
}
