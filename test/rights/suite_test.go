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

package rights

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/harness"
)

const (
	// deadline is what anything may take on a machine that is busy with builds.
	deadline = 60 * time.Second
	poll     = 50 * time.Millisecond
	// buildTimeout covers a build of the operator from nothing.
	buildTimeout = 15 * time.Minute

	// Who the operator is in config/default.
	operatorNamespace = "shared-quota-system"
	operatorAccount   = "shared-quota-manager"
	operatorName      = "system:serviceaccount:" + operatorNamespace + ":" + operatorAccount
)

// What the whole suite shares.
var (
	cluster *harness.Cluster
	// admin is a member of system:masters, whom RBAC doesn't ask.
	admin client.Client
	// audited is what the operator asks for.
	audited audit
	running *harness.Operator
	// identity is who the operator is.
	identity *rest.Config
	// metricsURL is where it serves its metrics.
	metricsURL string
)

func TestRights(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	suite, reporter := GinkgoConfiguration()
	suite.Timeout = buildTimeout + 10*time.Minute
	RunSpecs(t, "The operator's rights", suite, reporter)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(deadline)
	SetDefaultEventuallyPollingInterval(poll)
	EnforceDefaultTimeoutsWhenUsingContexts()

	var flags map[string]string
	var err error
	dir := GinkgoT().TempDir()
	audited, flags, err = newAudit(dir)
	Expect(err).NotTo(HaveOccurred())
	cluster, err = harness.Start(ctx, harness.Options{CRDDirs: []string{}, APIServerFlags: flags})
	Expect(err).NotTo(HaveOccurred())
	_, err = cluster.StartControllerManager(ctx)
	Expect(err).NotTo(HaveOccurred())
	kubectl(ctx, "apply", "-k", "config/default")
	kubectl(ctx, "wait", "--for=condition=established", "--timeout=60s", "crd", "--all")

	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	Expect(quotav1.AddToScheme(scheme)).To(Succeed())
	config := cluster.Config()
	config.Timeout = deadline
	admin, err = client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	startOperator(ctx, dir)
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

// startOperator runs the operator as it runs in a cluster, but for where it is reached.
func startOperator(ctx context.Context, dir string) {
	GinkgoHelper()
	binary, err := harness.OperatorBinary(ctx, dir)
	Expect(err).NotTo(HaveOccurred())
	identity, err = cluster.User(operatorName, "system:serviceaccounts", "system:serviceaccounts:"+operatorNamespace)
	Expect(err).NotTo(HaveOccurred())
	kubeconfig, err := cluster.WriteKubeconfig("operator", identity)
	Expect(err).NotTo(HaveOccurred())
	port, err := harness.FreePort()
	Expect(err).NotTo(HaveOccurred())
	metricsPort, err := harness.FreePort()
	Expect(err).NotTo(HaveOccurred())
	metricsURL = fmt.Sprintf("https://localhost:%d/metrics", metricsPort)
	running, err = cluster.StartOperator(ctx, harness.OperatorOptions{
		Binary: binary, Kubeconfig: kubeconfig, LeaderElect: true, CertSecret: "shared-quota-webhook-cert",
		WebhookPort: port, WebhookURL: fmt.Sprintf("https://localhost:%d", port),
		MetricsPort: metricsPort,
		Args:        []string{"--namespace", operatorNamespace, "--status-interval", "100ms", "--metrics-secure"},
	})
	Expect(err).NotTo(HaveOccurred())
}

// kubectl runs kubectl as admin in the repository's root.
func kubectl(ctx context.Context, args ...string) {
	GinkgoHelper()
	root, err := harness.RepositoryRoot()
	Expect(err).NotTo(HaveOccurred())
	result, err := cluster.KubectlIn(ctx, root, nil, args...)
	Expect(err).NotTo(HaveOccurred())
	Expect(result.ExitCode).To(BeZero(), "kubectl %v:\n%s%s", args, result.Stdout, result.Stderr)
}

// operatorLog is what the operator has logged.
func operatorLog() string {
	GinkgoHelper()
	log, err := os.ReadFile(running.Log())
	Expect(err).NotTo(HaveOccurred())
	return string(log)
}
