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

package olm

import (
	"context"
	"os"
	"path/filepath"
	"strings"
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
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
)

const (
	// deadline is what anything may take on a machine that is busy with builds.
	deadline = 60 * time.Second
	poll     = 50 * time.Millisecond
	// buildTimeout covers a build of the operator from nothing.
	buildTimeout = 15 * time.Minute

	// namespace is where the administrator has OLM install the operator: another
	// one than the bundle suggests.
	namespace   = "quota-elsewhere"
	inNamespace = client.InNamespace(namespace)
)

// What the whole suite shares.
var (
	given   bundle
	cluster *harness.Cluster
	scheme  = runtime.NewScheme()
	// admin is a member of system:masters.
	admin client.Client
	// operator is the operator's user, through admin's connection.
	operator client.Client
	replicas []replica
	auditLog string
)

func TestOLM(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	suite, reporter := GinkgoConfiguration()
	suite.Timeout = buildTimeout + 10*time.Minute
	RunSpecs(t, "The OLM bundle", suite, reporter)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(deadline)
	SetDefaultEventuallyPollingInterval(poll)
	EnforceDefaultTimeoutsWhenUsingContexts()
	given = readBundle()
	binary := make(chan string, 1)
	go func() {
		defer GinkgoRecover()
		defer close(binary)
		built, err := harness.OperatorBinary(ctx, GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		binary <- built
	}()
	startCluster(ctx)
	Expect(admin.Create(ctx, builders.Namespace(namespace).Label("pod-security.kubernetes.io/enforce", "restricted").Obj())).To(Succeed())
	install(ctx, given)
	kubectlApply(ctx, inOurNamespace("config/olm/extras.yaml"))

	kubeconfig, err := cluster.WriteKubeconfig("operator", identity(ctx, given))
	Expect(err).NotTo(HaveOccurred())
	path := <-binary
	for range *given.csv.Spec.Install.Spec.Deployments[0].Spec.Replicas {
		started := startReplica(ctx, given, path, kubeconfig)
		route(ctx, given, started)
		replicas = append(replicas, started)
	}
}, NodeTimeout(buildTimeout))

var _ = JustAfterEach(func() {
	if CurrentSpecReport().Failed() {
		AddReportEntry("logs", cluster.LogTails(30))
	}
})

var _ = AfterSuite(func() {
	if cluster != nil {
		Expect(cluster.Stop()).To(Succeed())
	}
})

// startCluster starts a control plane that knows OLM's types, calls webhooks at the
// endpoints of their Service, and writes down what the operator asks of it.
func startCluster(ctx context.Context) {
	GinkgoHelper()
	user := "system:serviceaccount:" + namespace + ":" + given.account()
	policy := filepath.Join(GinkgoT().TempDir(), "audit.json")
	auditLog = filepath.Join(filepath.Dir(policy), "audit.log")
	Expect(os.WriteFile(policy, auditPolicy(user), 0o600)).To(Succeed())
	var err error
	cluster, err = harness.Start(ctx, harness.Options{
		CRDDirs: []string{olmTypes()},
		APIServerFlags: map[string]string{
			"enable-aggregator-routing": "true", "audit-policy-file": policy, "audit-log-path": auditLog,
		},
	})
	Expect(err).NotTo(HaveOccurred())
	_, err = cluster.StartControllerManager(ctx)
	Expect(err).NotTo(HaveOccurred())
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, quotav1.AddToScheme,
	} {
		Expect(add(scheme)).To(Succeed())
	}
	admin = clientOf(cluster.Config())
	operator = clientOf(cluster.As(user, "system:serviceaccounts", "system:serviceaccounts:"+namespace, "system:authenticated"))
}

func clientOf(config *rest.Config) client.Client {
	GinkgoHelper()
	config.Timeout = deadline
	made, err := client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return made
}

// kubectlApply applies a manifest as an administrator does.
func kubectlApply(ctx context.Context, manifest string) {
	GinkgoHelper()
	result, err := cluster.Kubectl(ctx, strings.NewReader(manifest), "apply", "--validate=strict", "-f", "-")
	Expect(err).NotTo(HaveOccurred())
	Expect(result.ExitCode).To(BeZero(), result.Stdout+result.Stderr)
}
