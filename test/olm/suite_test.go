// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

const (
	// namespace is where the administrator has OLM install the operator: another
	// one than the bundle suggests.
	namespace   = "quota-elsewhere"
	inNamespace = client.InNamespace(namespace)
)

// What the whole suite shares.
var (
	given   bundle
	cluster *harness.Cluster
	// admin is a member of system:masters.
	admin client.Client
	// operator is the operator's user, through admin's connection.
	operator client.Client
	replicas []replica
	// path is the operator's binary.
	path     string
	auditLog string
)

func TestOLM(t *testing.T) {
	suite.Run(t, "The OLM bundle", suite.BuildTimeout+10*time.Minute)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	given = readBundle()
	binary := suite.Async(ctx, suite.Operator)
	startCluster(ctx)
	Expect(admin.Create(ctx, builders.Namespace(namespace).Label("pod-security.kubernetes.io/enforce", "restricted").Obj())).To(Succeed())
	install(ctx, given)
	kubectlApply(ctx, inOurNamespace("config/olm/extras.yaml"))

	path = <-binary
	runReplicas(ctx)
}, NodeTimeout(suite.BuildTimeout))

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
	admin = suite.Client(cluster.Config(), suite.Deadline)
	as := cluster.As(user, "system:serviceaccounts", "system:serviceaccounts:"+namespace, "system:authenticated")
	operator = suite.Client(as, suite.Deadline)
}

// runReplicas runs the pods of the Deployment.
func runReplicas(ctx context.Context) {
	GinkgoHelper()
	kubeconfig, err := cluster.WriteKubeconfig("operator", identity(ctx, given))
	Expect(err).NotTo(HaveOccurred())
	for range *given.csv.Spec.Install.Spec.Deployments[0].Spec.Replicas {
		started := startReplica(ctx, given, path, kubeconfig)
		route(ctx, given, started)
		replicas = append(replicas, started)
	}
}

// kubectlApply applies a manifest as an administrator does.
func kubectlApply(ctx context.Context, manifest string) {
	GinkgoHelper()
	result, err := cluster.Kubectl(ctx, strings.NewReader(manifest), "apply", "--validate=strict", "-f", "-")
	Expect(err).NotTo(HaveOccurred())
	Expect(result.ExitCode).To(BeZero(), result.Stdout+result.Stderr)
}
