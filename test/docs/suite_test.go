// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

const (
	// poll is longer than other suites': each look starts a program.
	poll = 100 * time.Millisecond
	// pageTimeout bounds all that one page tells to do.
	pageTimeout = 5 * time.Minute
)

// What the whole suite shares.
var (
	root string
	// binary is the operator, and tools the directory with kubectl and the plugin.
	binary, tools string
)

func TestDocs(t *testing.T) {
	suite.Run(t, "What the documentation tells to do", suite.BuildTimeout+30*time.Minute)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyPollingInterval(poll)
	root = suite.RepositoryRoot()
	tools = GinkgoT().TempDir()
	binary = suite.Operator(ctx)
	suite.BuildPlugin(ctx, tools)
}, NodeTimeout(suite.BuildTimeout))

// installation is a cluster in which the operator is installed, for one page.
type installation struct {
	cluster *harness.Cluster
	// dir is what the page's commands start from.
	dir string
}

// install starts a cluster with what config/default installs. The operator itself
// runs beside it, for no node is there to run it.
func install(ctx context.Context) installation {
	GinkgoHelper()
	cluster, err := harness.Start(ctx, harness.Options{CRDDirs: []string{}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cluster.Stop)
	_, err = cluster.StartControllerManager(ctx)
	Expect(err).NotTo(HaveOccurred())
	suite.Install(ctx, cluster)
	_, err = cluster.StartOperator(ctx, harness.OperatorOptions{
		Binary: binary, Kubeconfig: suite.Kubeconfig(cluster),
		Args: []string{"--namespace", suite.Namespace, "--status-interval", "100ms"},
	})
	Expect(err).NotTo(HaveOccurred())
	suite.Kubectl(ctx, cluster, "wait", "--for=create", "--timeout=60s", "validatingwebhookconfiguration/shared-quota")
	return installation{cluster: cluster, dir: GinkgoT().TempDir()}
}

func (i installation) mustRun(ctx context.Context, line string) {
	GinkgoHelper()
	output, err := i.run(ctx, line)
	Expect(err).NotTo(HaveOccurred(), "%s\n%s", line, output)
}

// run runs a command line as a person would type it, and returns all it prints.
func (i installation) run(ctx context.Context, line string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, suite.Deadline)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-c", "set -euo pipefail; "+inPlace(line))
	shell.Dir = i.dir
	if usesRepository(line) {
		shell.Dir = root
	}
	home := i.dir
	if strings.HasPrefix(line, "make ") {
		home = os.Getenv("HOME") // In another one, even a dry run downloads all Go modules.
	}
	shell.Env = append(os.Environ(),
		"KUBECONFIG="+i.cluster.Kubeconfig(), "HOME="+home, "NO_COLOR=1",
		fmt.Sprintf("PATH=%s:%s:%s", filepath.Dir(i.cluster.KubectlPath()), tools, os.Getenv("PATH")))
	output, err := shell.CombinedOutput()
	return string(output), err
}
