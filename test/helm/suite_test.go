// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// chartDir is the chart's directory below the repository's root.
const chartDir = "charts/shared-quota-operator"

// What the whole suite shares.
var (
	cluster *harness.Cluster
	// admin is a member of system:masters, whom RBAC doesn't ask.
	admin client.Client
	// binary is this release of the operator, and next the one after it.
	binary, next string
	cli          helm
	// audit has what the operator asks, in either namespace.
	audit suite.Audit
)

func TestMain(m *testing.M) {
	os.Exit(harness.InNamespace(m.Run))
}

func TestHelm(t *testing.T) {
	suite.Run(t, "The Helm chart", suite.BuildTimeout+10*time.Minute)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	built := suite.Async(ctx, suite.Operator)
	builtNext := suite.Async(ctx, nextOperator)
	builtCLI := suite.Async(ctx, helmBinary)
	var flags map[string]string
	audit, flags = suite.NewAudit(suite.User, "system:serviceaccount:"+elsewhere+":"+suite.ServiceAccount)
	cluster, admin = suite.Start(ctx, harness.Options{CRDDirs: []string{}, Production: true, APIServerFlags: flags})
	suite.StartControllers(ctx, cluster)
	binary, next = <-built, <-builtNext
	cli = newHelm(<-builtCLI)
}, NodeTimeout(suite.BuildTimeout))

// nextOperator builds the release after this one.
func nextOperator(ctx context.Context) string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	path, err := harness.BuildOperator(ctx, filepath.Join(dir, "next"), "-overlay", suite.NextRelease(dir))
	Expect(err).NotTo(HaveOccurred())
	return path
}

// kubectl runs kubectl as an administrator, and returns what it prints.
func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return suite.Kubectl(ctx, cluster, args...)
}
