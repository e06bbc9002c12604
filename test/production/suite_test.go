// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package production

import (
	"context"
	"os"
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
	// operator is the Deployment, and replicas what runs of it.
	operator *harness.Production
	replicas []*harness.Operator
	binary   string
	// mayScrape is the token of a ServiceAccount that may read metrics.
	mayScrape string
)

func TestMain(m *testing.M) {
	os.Exit(harness.InNamespace(m.Run))
}

func TestProduction(t *testing.T) {
	suite.Run(t, "The operator as it runs in a cluster", suite.BuildTimeout+10*time.Minute)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	built := suite.Async(ctx, suite.Operator)
	var err error
	cluster, err = harness.Start(ctx, harness.Options{CRDDirs: []string{}, Production: true})
	Expect(err).NotTo(HaveOccurred())
	admin = suite.Client(cluster.Config(), suite.Deadline)
	operator = suite.StartProduction(ctx, cluster)
	mayScrape = suite.Scraper(ctx, cluster)
	binary = <-built
	for i := range 2 {
		replicas = append(replicas, start(ctx, i))
	}
	waitUntilReady(replicas...)
}, NodeTimeout(suite.BuildTimeout))

// A failure is told with what the replicas said last.
var _ = JustAfterEach(func() {
	if cluster != nil && CurrentSpecReport().Failed() {
		AddReportEntry("the end of the logs", cluster.LogTails(20), ReportEntryVisibilityFailureOrVerbose)
	}
})

var _ = AfterSuite(func() {
	if cluster == nil {
		return
	}
	for _, replica := range replicas {
		Expect(operator.Stop(replica)).To(Succeed())
	}
	if operator != nil {
		operator.Close()
	}
	suite.CheckOperatorLogs(cluster)
	Expect(cluster.Stop()).To(Succeed())
})

// start runs a replica at an address, and returns once it says that it is ready.
func start(ctx context.Context, address int) *harness.Operator {
	GinkgoHelper()
	replica, err := operator.Start(ctx, harness.ReplicaOptions{Binary: binary, Address: harness.Address(address)})
	Expect(err).NotTo(HaveOccurred())
	return replica
}

// waitUntilReady returns once these replicas, and no others, are ready by the
// EndpointSlice.
func waitUntilReady(want ...*harness.Operator) {
	GinkgoHelper()
	Eventually(operator.Ready).Should(ConsistOf(want))
}
