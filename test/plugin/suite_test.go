/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package plugin

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
)

const (
	// deadline is what anything may take on a machine that is busy with builds.
	deadline = 60 * time.Second
	poll     = 50 * time.Millisecond
	// buildTimeout covers a build of the operator and the plugin from nothing.
	buildTimeout = 15 * time.Minute
	// logLines is how much of the operator's log is told with a failure.
	logLines = 20
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
	RegisterFailHandler(Fail)
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	suite, reporter := GinkgoConfiguration()
	suite.Timeout = buildTimeout + 10*time.Minute
	RunSpecs(t, "kubectl crq", suite, reporter)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(deadline)
	SetDefaultEventuallyPollingInterval(poll)
	EnforceDefaultTimeoutsWhenUsingContexts()

	pluginDir = GinkgoT().TempDir()
	binary := make(chan string, 1)
	go func() {
		defer GinkgoRecover()
		defer close(binary)
		buildPlugin(ctx)
		manager, err := harness.OperatorBinary(ctx, GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		binary <- manager
	}()
	startControlPlane(ctx)
	var err error
	running, err = cluster.StartOperator(ctx, harness.OperatorOptions{Binary: <-binary, Args: []string{"--status-interval", "100ms"}})
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(buildTimeout))

var _ = AfterSuite(func() {
	if cluster == nil {
		return
	}
	if running != nil {
		Expect(running.Stop()).To(Succeed())
	}
	Expect(cluster.Stop()).To(Succeed())
})

// A failure is told with what the operator said last.
var _ = JustAfterEach(func() {
	if !CurrentSpecReport().Failed() || running == nil {
		return
	}
	log, err := os.ReadFile(running.Log())
	Expect(err).NotTo(HaveOccurred())
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	last := lines[max(0, len(lines)-logLines):]
	AddReportEntry("the end of the operator's log", strings.Join(last, "\n"), ReportEntryVisibilityFailureOrVerbose)
})

// startControlPlane starts what specs need, no more: other controllers would
// create objects of their own in each namespace.
func startControlPlane(ctx context.Context) {
	GinkgoHelper()
	var err error
	cluster, err = harness.Start(ctx, harness.Options{})
	Expect(err).NotTo(HaveOccurred())
	_, err = cluster.StartControllerManager(ctx, "--controllers",
		"namespace-controller,deployment-controller,replicaset-controller,clusterrole-aggregation-controller,"+
			// What makes pods and claims of manifests, and counts what ResourceQuotas limit.
			"statefulset-controller,daemonset-controller,replicationcontroller-controller,job-controller,"+
			"ephemeral-volume-controller,resourcequota-controller")
	Expect(err).NotTo(HaveOccurred())

	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(quotav1.AddToScheme(scheme)).To(Succeed())
	config := cluster.Config()
	config.Timeout = deadline
	api, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())

	root, err := harness.RepositoryRoot()
	Expect(err).NotTo(HaveOccurred())
	mustKubectl(ctx, "apply", "-f", filepath.Join(root, "config", "rbac", "local_quota_view_role.yaml"))
}

// buildPlugin builds the plugin, and its completion by another name.
func buildPlugin(ctx context.Context) {
	GinkgoHelper()
	root, err := harness.RepositoryRoot()
	Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(pluginDir, "kubectl-crq")
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/kubectl-crq")
	build.Dir = root
	output, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
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
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		is := &quotav1.ClusterResourceQuota{}
		g.Expect(api.Get(ctx, client.ObjectKeyFromObject(quota), is)).To(Succeed())
		g.Expect(is.Status.ObservedGeneration).To(Equal(is.Generation))
		for _, condition := range []string{quotav1.ConditionReady, quotav1.ConditionEnforced} {
			g.Expect(meta.IsStatusConditionTrue(is.Status.Conditions, condition)).To(BeTrue(), "%s: %+v", condition, is.Status.Conditions)
		}
	}).Should(Succeed())
}

// uses returns once the quota's status says that this is used, in the form of
// the column USED, and nothing is reserved.
func uses(ctx context.Context, quota, summary string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		is := &quotav1.ClusterResourceQuota{}
		g.Expect(api.Get(ctx, client.ObjectKey{Name: quota}, is)).To(Succeed())
		g.Expect(is.Status.Summary).To(Equal(summary))
		for name, amount := range is.Status.Reserved {
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
