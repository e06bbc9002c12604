// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package protection

import (
	"context"
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
	// admin is a member of system:masters, whom RBAC doesn't ask.
	admin client.Client
	// owner may do everything with the operator's types, by RBAC.
	owner client.Client
	// running is the operator, and settings what it was started with.
	running  *harness.Operator
	settings harness.OperatorOptions
)

func TestProtection(t *testing.T) {
	suite.Run(t, "What the operator keeps", suite.BuildTimeout+10*time.Minute)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	binary := suite.Async(ctx, suite.Operator)
	var err error
	cluster, err = harness.Start(ctx, harness.Options{CRDDirs: []string{}})
	Expect(err).NotTo(HaveOccurred())
	_, err = cluster.StartControllerManager(ctx)
	Expect(err).NotTo(HaveOccurred())
	suite.Install(ctx, cluster)
	admin = suite.Client(cluster.Config(), suite.Deadline)
	suite.Kubectl(ctx, cluster, "create", "clusterrole", "owner", "--verb=*", "--resource=*.quota.sharedquota.dev")
	suite.Kubectl(ctx, cluster, "create", "clusterrolebinding", "owner", "--clusterrole=owner", "--user=vera")
	vera, err := cluster.User("vera")
	Expect(err).NotTo(HaveOccurred())
	owner = suite.Client(vera, suite.Deadline)

	settings = harness.OperatorOptions{
		Binary: <-binary, Kubeconfig: suite.Kubeconfig(cluster), Args: []string{"--status-interval", "100ms"},
	}
	start(ctx)
}, NodeTimeout(suite.BuildTimeout))

// A failure is told with what the operator said last.
var _ = JustAfterEach(func() { suite.ReportLog(running) })

var _ = AfterSuite(func() { suite.Stop(cluster, running) })

func start(ctx context.Context) {
	GinkgoHelper()
	var err error
	running, err = cluster.StartOperator(ctx, settings)
	Expect(err).NotTo(HaveOccurred())
	settings.WebhookPort = running.WebhookPort
}
