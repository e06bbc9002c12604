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

package protection

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
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

	// operatorName is the user that config/default lets write.
	operatorName = "system:serviceaccount:shared-quota-system:shared-quota-manager"
)

// What the whole suite shares.
var (
	cluster *harness.Cluster
	scheme  = runtime.NewScheme()
	// admin is a member of system:masters, whom RBAC doesn't ask.
	admin client.Client
	// owner may do everything with the operator's types, by RBAC.
	owner client.Client
	// running is the operator, and settings what it was started with.
	running  *harness.Operator
	settings harness.OperatorOptions
)

func TestProtection(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	suite, reporter := GinkgoConfiguration()
	suite.Timeout = buildTimeout + 10*time.Minute
	RunSpecs(t, "What the operator keeps", suite, reporter)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(deadline)
	SetDefaultEventuallyPollingInterval(poll)
	EnforceDefaultTimeoutsWhenUsingContexts()

	binary := make(chan string, 1)
	go func() {
		defer GinkgoRecover()
		defer close(binary)
		binary <- operatorBinary(ctx)
	}()
	var err error
	cluster, err = harness.Start(ctx, harness.Options{CRDDirs: []string{}})
	Expect(err).NotTo(HaveOccurred())
	_, err = cluster.StartControllerManager(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(quotav1.AddToScheme(scheme)).To(Succeed())

	kubectl(ctx, "apply", "-k", "config/default")
	kubectl(ctx, "wait", "--for=condition=established", "--timeout=60s", "crd", "--all")
	admin = clientOf(cluster.Config())
	kubectl(ctx, "create", "clusterrole", "owner", "--verb=*", "--resource=*.quota.sharedquota.dev")
	kubectl(ctx, "create", "clusterrolebinding", "owner", "--clusterrole=owner", "--user=vera")
	vera, err := cluster.User("vera")
	Expect(err).NotTo(HaveOccurred())
	owner = clientOf(vera)

	// As a pod's token would make it.
	identity, err := cluster.User(operatorName, "system:serviceaccounts", "system:serviceaccounts:shared-quota-system")
	Expect(err).NotTo(HaveOccurred())
	kubeconfig, err := cluster.WriteKubeconfig("operator", identity)
	Expect(err).NotTo(HaveOccurred())
	settings = harness.OperatorOptions{Binary: <-binary, Kubeconfig: kubeconfig, Args: []string{"--status-interval", "100ms"}}
	start(ctx)
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

func start(ctx context.Context) {
	GinkgoHelper()
	var err error
	running, err = cluster.StartOperator(ctx, settings)
	Expect(err).NotTo(HaveOccurred())
	settings.WebhookPort = running.WebhookPort
}

func clientOf(config *rest.Config) client.Client {
	GinkgoHelper()
	config.Timeout = deadline
	made, err := client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return made
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

// operatorBinary returns the operator to test.
func operatorBinary(ctx context.Context) string {
	GinkgoHelper()
	binary, err := harness.OperatorBinary(ctx, GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	return binary
}
