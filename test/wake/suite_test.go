// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package wake

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// What the whole suite shares.
var (
	cluster *harness.Cluster
	// admin is a member of system:masters. Its watches last.
	admin client.WithWatch
	// controllers are those of Kubernetes.
	controllers *harness.Process
	balancer    *harness.Balancer
	// settings is what each replica is started with, and replicas those that run.
	settings harness.OperatorOptions
	replicas []*replica
)

// replica is one of the operator.
type replica struct {
	*harness.Operator
	metricsPort int
}

func TestWake(t *testing.T) {
	suite.Run(t, "Workloads that wait for room", suite.BuildTimeout+10*time.Minute)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	binary := suite.Async(ctx, suite.Operator)
	var err error
	cluster, err = harness.Start(ctx, harness.Options{
		CRDDirs: []string{},
		// Replicas share the calls only where each has a connection.
		APIServerEnv: []string{"DISABLE_HTTP2=1"},
	})
	Expect(err).NotTo(HaveOccurred())
	// The node has no kubelet. If that were noticed, no DaemonSet would want a pod on it.
	controllers, err = cluster.StartControllerManager(ctx, "--vmodule=deployment_controller=2", "--controllers=*,-node-lifecycle-controller")
	Expect(err).NotTo(HaveOccurred())
	suite.Install(ctx, cluster)
	admin = suite.Client(cluster.Config(), 0)
	balancer, err = harness.NewBalancer()
	Expect(err).NotTo(HaveOccurred())
	settings = harness.OperatorOptions{
		Binary: <-binary, Kubeconfig: suite.Kubeconfig(cluster), LeaderElect: true, CertSecret: suite.CertSecret,
		// A certificate in a Secret is for a name.
		WebhookURL: strings.Replace(balancer.URL(), "127.0.0.1", "localhost", 1),
		Args:       []string{"--namespace", suite.Namespace},
	}
	add(ctx)
	add(ctx)
	begin(ctx)
}, NodeTimeout(suite.BuildTimeout))

// A failure is told with what the operator said last.
var _ = JustAfterEach(func() {
	for _, replica := range replicas {
		suite.ReportLog(replica.Operator)
	}
})

var _ = AfterSuite(func() {
	if cluster == nil {
		return
	}
	for _, replica := range replicas {
		Expect(replica.Stop()).To(Succeed())
	}
	suite.CheckOperatorLogs(cluster)
	if balancer != nil {
		Expect(balancer.Close()).To(Succeed())
	}
	Expect(cluster.Stop()).To(Succeed())
})

// add starts a replica, and hands it calls.
func add(ctx context.Context) {
	GinkgoHelper()
	port, err := harness.FreePort()
	Expect(err).NotTo(HaveOccurred())
	options := settings
	options.MetricsPort = port
	started, err := cluster.StartOperator(ctx, options)
	Expect(err).NotTo(HaveOccurred())
	replicas = append(replicas, &replica{Operator: started, metricsPort: port})
	serve()
}

func serve() {
	ports := make([]int, 0, len(replicas))
	for _, replica := range replicas {
		ports = append(ports, replica.WebhookPort)
	}
	balancer.SetBackends(ports...)
}
