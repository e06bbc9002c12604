// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package surge

import (
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
	// admin is a member of system:masters. Its watches last.
	admin    client.WithWatch
	replicas *suite.Replicas
	// scraper is the token of a ServiceAccount that may read metrics.
	scraper string
)

func TestMain(m *testing.M) {
	os.Exit(harness.InNamespace(m.Run))
}

func TestSurge(t *testing.T) {
	suite.Run(t, "Pods that replace others", suite.BuildTimeout+10*time.Minute)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	built := suite.Async(ctx, suite.Operator)
	cluster, _ = suite.Start(ctx, harness.Options{CRDDirs: []string{}, Production: true})
	admin = suite.Client(cluster.Config(), 0)
	// The node has no kubelet. If that were noticed, no DaemonSet would want a pod on it.
	_, err := cluster.StartControllerManager(ctx, "--controllers=*,-node-lifecycle-controller")
	Expect(err).NotTo(HaveOccurred())
	suite.Install(ctx, cluster)
	scraper = suite.Scraper(ctx, cluster)
	binary := <-built
	replicas = suite.RunReplicas(ctx, cluster, suite.Namespace, func(string) string { return binary })
	DeferCleanup(replicas.End)
}, NodeTimeout(suite.BuildTimeout))
