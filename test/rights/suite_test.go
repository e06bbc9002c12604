// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// What the specs of one installation share.
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

// binary is the operator.
var binary string

func TestRights(t *testing.T) {
	suite.Run(t, "The operator's rights", suite.BuildTimeout+20*time.Minute)
}

var _ = BeforeSuite(func(ctx SpecContext) { binary = suite.Operator(ctx) }, NodeTimeout(suite.BuildTimeout))

// A failure is told with what the operator said last.
var _ = JustAfterEach(func() { suite.ReportLog(running) })

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

// begin starts a cluster in which what the kustomization installs is all that the operator
// may do, and the operator. They end with the specs of the container whose BeforeAll calls
// it.
func begin(ctx context.Context, kustomization string, args ...string) {
	GinkgoHelper()
	cluster, running = nil, nil
	DeferCleanup(func() { suite.Stop(cluster, running) })
	var flags map[string]string
	var err error
	audited, flags, err = newAudit(GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	maps.Copy(flags, everythingServed(ctx))
	cluster, err = harness.Start(ctx, harness.Options{CRDDirs: []string{}, APIServerFlags: flags})
	Expect(err).NotTo(HaveOccurred())
	_, err = cluster.StartControllerManager(ctx)
	Expect(err).NotTo(HaveOccurred())
	suite.InstallFrom(ctx, cluster, kustomization)
	admin = suite.Client(cluster.Config(), suite.Deadline)
	startOperator(ctx, args...)
}

// startOperator runs the operator as it runs in a cluster, but for where it is reached.
func startOperator(ctx context.Context, args ...string) {
	GinkgoHelper()
	identity = suite.Identity(cluster)
	port, err := harness.FreePort()
	Expect(err).NotTo(HaveOccurred())
	metricsPort, err := harness.FreePort()
	Expect(err).NotTo(HaveOccurred())
	metricsURL = fmt.Sprintf("https://localhost:%d/metrics", metricsPort)
	running, err = cluster.StartOperator(ctx, harness.OperatorOptions{
		Binary: binary, Kubeconfig: suite.Kubeconfig(cluster), LeaderElect: true, CertSecret: suite.CertSecret,
		WebhookPort: port, WebhookURL: fmt.Sprintf("https://localhost:%d", port),
		MetricsPort: metricsPort,
		Args:        append([]string{"--namespace", suite.Namespace, "--status-interval", "100ms", "--metrics-secure"}, args...),
	})
	Expect(err).NotTo(HaveOccurred())
}
