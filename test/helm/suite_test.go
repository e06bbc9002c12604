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

// auditPolicy has the API server write down what ServiceAccounts of the operator's name ask.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["system:serviceaccounts:` + suite.Namespace + `", "system:serviceaccounts:` + elsewhere + `"]
- level: None
`

// What the whole suite shares.
var (
	cluster *harness.Cluster
	// admin is a member of system:masters, whom RBAC doesn't ask.
	admin client.Client
	// binary is this release of the operator, and next the one after it.
	binary, next string
	cli          helm
	auditLog     string
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
	dir := GinkgoT().TempDir()
	policy := filepath.Join(dir, "audit.yaml")
	auditLog = filepath.Join(dir, "audit.log")
	Expect(os.WriteFile(policy, []byte(auditPolicy), 0o600)).To(Succeed())
	var err error
	cluster, err = harness.Start(ctx, harness.Options{
		CRDDirs: []string{}, Production: true,
		APIServerFlags: map[string]string{"audit-policy-file": policy, "audit-log-path": auditLog},
	})
	Expect(err).NotTo(HaveOccurred())
	_, err = cluster.StartControllerManager(ctx)
	Expect(err).NotTo(HaveOccurred())
	admin = suite.Client(cluster.Config(), suite.Deadline)
	binary, next = <-built, <-builtNext
	cli = newHelm(<-builtCLI)
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
	suite.CheckOperatorLogs(cluster)
	Expect(cluster.Stop()).To(Succeed())
})

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
