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
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/faults/proxy"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// What the whole suite shares.
var (
	cluster *harness.Cluster
	// admin is a member of system:masters, whom RBAC doesn't ask.
	admin client.WithWatch
	// replicas are those of the Deployment. Each container has its own.
	replicas *suite.Replicas
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
	cluster, admin = suite.Start(ctx, harness.Options{CRDDirs: []string{}, Production: true})
	suite.Install(ctx, cluster)
	mayScrape = suite.Scraper(ctx, cluster)
	binary := <-built
	replicas = suite.RunReplicas(ctx, cluster, suite.Namespace, func(string) string { return binary })
	DeferCleanup(replicas.End)
}, NodeTimeout(suite.BuildTimeout))

// fresh replaces the replicas by new ones with further arguments: one for each way to the API server, the
// leader first; nil is the direct way. A leader before that was killed, or couldn't reach the API server any more, has left
// its Lease behind. Until that has expired, two replicas would compete for it.
func fresh(ctx context.Context, args []string, ways ...*rest.Config) {
	GinkgoHelper()
	replicas.StopAll()
	replicas.Args = args
	for _, way := range ways {
		replicas.Config = way
		replicas.Add(ctx)
		Eventually(ctx, leader).WithTimeout(2*suite.Deadline).Should(BeZero(), "the first one leads")
	}
}

// limited makes a quota and a namespace of its name, and returns once it is enforced.
func limited(ctx context.Context, quota *builders.QuotaBuilder) {
	GinkgoHelper()
	name := quota.Obj().Name
	suite.Create(ctx, admin, builders.Namespace(name).Label("team", name).Obj(), quota.Label("team", name).Obj())
	suite.WaitUntilEnforced(ctx, admin, name)
	DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(admin.Delete(ctx, quota.Obj()))).To(Succeed()) })
}

// between starts what a replica reaches the API server through.
func between() *proxy.Proxy {
	GinkgoHelper()
	made, err := proxy.Start(replicas.Identity(), 1)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(made.Close)
	return made
}
