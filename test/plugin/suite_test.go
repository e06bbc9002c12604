// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// What the whole suite shares. Specs make quotas and namespaces of their own,
// with names that no other spec's begin with.
var (
	cluster *harness.Cluster
	// api is the administrator's client. It reads from the API server.
	api client.WithWatch
	// running is the operator.
	running *harness.Operator
	// pluginDir holds the plugin and its completion; it comes first in PATH.
	pluginDir string
)

func TestPlugin(t *testing.T) {
	suite.Run(t, "kubectl crq", suite.BuildTimeout+10*time.Minute)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	pluginDir = GinkgoT().TempDir()
	binary := suite.Async(ctx, func(ctx context.Context) string {
		buildPlugin(ctx)
		return suite.Operator(ctx)
	})
	startControlPlane(ctx)
	var err error
	running, err = cluster.StartOperator(ctx, harness.OperatorOptions{Binary: <-binary, Args: []string{"--status-interval", "100ms"}})
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(suite.BuildTimeout))

// startControlPlane starts what specs need, no more: other controllers would
// create objects of their own in each namespace.
func startControlPlane(ctx context.Context) {
	GinkgoHelper()
	cluster, api = suite.Start(ctx, harness.Options{})
	suite.StartControllers(ctx, cluster, "--controllers",
		"namespace-controller,deployment-controller,replicaset-controller,clusterrole-aggregation-controller,"+
			// What makes pods and claims of manifests, and counts what ResourceQuotas limit.
			"statefulset-controller,daemonset-controller,replicationcontroller-controller,job-controller,"+
			"ephemeral-volume-controller,resourceclaim-controller,resourcequota-controller")
	mustKubectl(ctx, "apply", "-f", filepath.Join(suite.RepositoryRoot(), "config", "rbac", "local_quota_view_role.yaml"))
}

// buildPlugin builds the plugin, and its completion by another name.
func buildPlugin(ctx context.Context) {
	GinkgoHelper()
	path := suite.BuildPlugin(ctx, pluginDir)
	Expect(os.Symlink(path, filepath.Join(pluginDir, "kubectl_complete-crq"))).To(Succeed())
}

// namespace creates a namespace with these labels, which are given as key, value.
func namespace(ctx context.Context, name string, labels ...string) {
	GinkgoHelper()
	builder := builders.Namespace(name)
	for i := 0; i+1 < len(labels); i += 2 {
		builder.Label(labels[i], labels[i+1])
	}
	mustCreate(ctx, builder.Obj())
}

func mustCreate(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) error { return api.Create(ctx, object) }).Should(Succeed())
}

// enforced creates a quota and returns once it is counted and enforced.
func enforced(ctx context.Context, quota *quotav1.ClusterResourceQuota) {
	GinkgoHelper()
	mustCreate(ctx, quota)
	suite.WaitUntilEnforced(ctx, api, quota.Name)
}

// uses returns once the quota's status says that this is used, in the form of
// the column USED, and nothing is reserved.
func uses(ctx context.Context, quota, summary string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		current := &quotav1.ClusterResourceQuota{}
		g.Expect(api.Get(ctx, client.ObjectKey{Name: quota}, current)).To(Succeed())
		g.Expect(current.Status.Summary).To(Equal(summary))
		for name, amount := range current.Status.Reserved {
			g.Expect(amount.IsZero()).To(BeTrue(), "%s: %s", name, amount.String())
		}
	}).Should(Succeed())
}

// viewer returns the kubeconfig of a user who may view these namespaces, and
// nothing else, once RBAC lets them.
func viewer(ctx context.Context, name string, namespaces ...string) string {
	GinkgoHelper()
	config, err := cluster.User(name)
	Expect(err).NotTo(HaveOccurred())
	path, err := cluster.WriteKubeconfig(name, config)
	Expect(err).NotTo(HaveOccurred())
	for _, namespace := range namespaces {
		mustKubectl(ctx, "create", "rolebinding", "view-"+name, "--clusterrole=view", "--user="+name, "-n", namespace)
		Eventually(ctx, func(ctx context.Context) int {
			return kubectl(ctx, path, nil, "get", "localresourcequotas,resourcequotas", "-n", namespace).status
		}).Should(BeZero())
	}
	return path
}
