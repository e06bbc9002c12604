// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
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
	// olmNamespace is OLM's own.
	olmNamespace = "olm"
	// olmHealth answers once the first of OLM's operators serves. Both listen at this port; the second logs that it
	// can't, and works without.
	olmHealth = "http://127.0.0.1:8080/healthz"
)

// What the whole suite shares.
var (
	cluster *harness.Cluster
	// admin is a member of system:masters.
	admin client.Client
	// binary is the operator's.
	binary string
)

func TestMain(m *testing.M) {
	os.Exit(harness.InNamespace(m.Run))
}

func TestLive(t *testing.T) {
	suite.Run(t, "OLM itself", suite.BuildTimeout+10*time.Minute)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	built := suite.Async(ctx, suite.Operator)
	cluster, admin = suite.Start(ctx, harness.Options{CRDDirs: []string{olmTypes(ctx)}, Production: true})
	suite.StartControllers(ctx, cluster)
	Expect(admin.Create(ctx, builders.Namespace(olmNamespace).Obj())).To(Succeed())
	for _, name := range []string{"olm", "catalog"} {
		_, err := cluster.StartProgram(ctx, harness.ProgramOptions{
			Name: "olm-" + name, Path: tool("OLM_BINARIES", name), Args: []string{"--namespace", olmNamespace},
			Env: []string{"KUBECONFIG=" + cluster.Kubeconfig()}, ReadyURL: olmHealth,
		})
		Expect(err).NotTo(HaveOccurred())
	}
	binary = <-built
}, NodeTimeout(suite.BuildTimeout))

// A failure is told with what OLM said last, too.
var _ = JustAfterEach(func() {
	if cluster != nil && CurrentSpecReport().Failed() {
		AddReportEntry("the end of the logs", cluster.LogTails(30), ReportEntryVisibilityFailureOrVerbose)
	}
})

// tool returns the path of what an environment variable names: a file, or a directory with the file name.
func tool(variable, name string) string {
	GinkgoHelper()
	named := os.Getenv(variable)
	Expect(named).NotTo(BeEmpty(), "%s must be set; make test-olm does that", variable)
	return filepath.Join(named, name)
}

// olmTypes returns the directory of the CustomResourceDefinitions that the tested OLM installs.
func olmTypes(ctx context.Context) string {
	GinkgoHelper()
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", "github.com/operator-framework/operator-lifecycle-manager")
	download.Dir = filepath.Join(suite.RepositoryRoot(), "hack", "tools", "olm")
	download.Env = append(os.Environ(), "GOWORK=off")
	output, err := download.Output()
	Expect(err).NotTo(HaveOccurred(), string(output))
	var module struct {
		Dir string `json:"Dir"`
	}
	Expect(json.Unmarshal(output, &module)).To(Succeed())
	return filepath.Join(module.Dir, "deploy", "chart", "crds")
}
