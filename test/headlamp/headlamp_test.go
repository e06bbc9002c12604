// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package headlamp

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

const (
	// owner is the project owner of the namespace checkout, and no more.
	owner = "olga"
	// browserTimeout bounds the builds and the tests in the browser.
	browserTimeout = 15 * time.Minute
)

// What the whole suite shares.
var (
	cluster *harness.Cluster
	// plugin is the directory with the plugin.
	plugin string
)

func TestHeadlamp(t *testing.T) {
	suite.Run(t, "The Headlamp plugin in a browser", suite.BuildTimeout+browserTimeout+5*time.Minute)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	plugin = filepath.Join(suite.RepositoryRoot(), "plugins", "headlamp")
	Expect(filepath.Join(plugin, "node_modules", ".bin", "vitest")).To(BeAnExistingFile(), "run npm ci in plugins/headlamp, or make test-headlamp")
	binary := suite.Async(ctx, suite.Operator)
	cluster, _ = suite.Start(ctx, harness.Options{CRDDirs: []string{}})
	suite.StartControllers(ctx, cluster)
	suite.Install(ctx, cluster)
	_, err := cluster.StartOperator(ctx, harness.OperatorOptions{
		Binary: <-binary, Kubeconfig: suite.Kubeconfig(cluster),
		Args: []string{"--namespace", suite.Namespace, "--status-interval", "100ms"},
	})
	Expect(err).NotTo(HaveOccurred())
	kubectl(ctx, "wait", "--for=create", "--timeout=60s", "validatingwebhookconfiguration/shared-quota")
	populate(ctx)
}, NodeTimeout(suite.BuildTimeout))

var _ = It("works in a browser, for administrators and project owners", func(ctx SpecContext) {
	olga, err := cluster.User(owner)
	Expect(err).NotTo(HaveOccurred())
	asOwner, err := cluster.WriteKubeconfig(owner, olga)
	Expect(err).NotTo(HaveOccurred())

	tests := exec.CommandContext(ctx, filepath.Join(plugin, "node_modules", ".bin", "vitest"), "run", "--config", "test/browser/vitest.config.ts")
	tests.Dir = plugin
	tests.Env = append(os.Environ(),
		"ADMIN_URL="+proxy(ctx, "admin", cluster.Kubeconfig()), "OWNER_URL="+proxy(ctx, owner, asOwner),
		"KUBECTL="+cluster.KubectlPath(), "KUBECONFIG="+cluster.Kubeconfig())
	tests.Stdout, tests.Stderr = GinkgoWriter, GinkgoWriter
	// The browser is a child of a child, and must not outlive them.
	tests.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	tests.Cancel = func() error { return syscall.Kill(-tests.Process.Pid, syscall.SIGKILL) }
	tests.WaitDelay = 10 * time.Second
	Expect(tests.Run()).To(Succeed(), "the output above shows what failed")
}, NodeTimeout(browserTimeout))

// populate gives the pages something to show: a quota that is nearly full, one that only
// watches, a request that was refused, and a workload that waits.
func populate(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "apply", "-f", "test/docs/testdata/payments.yaml", "-f", "test/headlamp/testdata/world.yaml")
	kubectl(ctx, "wait", "--for=condition=Enforced", "crq/payments", "crq/lab", "--timeout=60s")
	kubectl(ctx, "wait", "--for=condition=Ready", "crq/payments", "--timeout=60s")
	kubectl(ctx, "apply", "-f", "test/docs/testdata/workloads.yaml")
	kubectl(ctx, "wait", `--for=jsonpath={.status.total.used.requests\.cpu}=7400m`, "crq/payments", "--timeout=60s")
	kubectl(ctx, "create", "service", "loadbalancer", "web", "--tcp=443", "-n", "checkout")
	kubectl(ctx, "create", "service", "loadbalancer", "api", "--tcp=443", "-n", "invoices")
	refused, err := cluster.Kubectl(ctx, nil, "create", "service", "loadbalancer", "third", "--tcp=443", "-n", "checkout")
	Expect(err).NotTo(HaveOccurred())
	Expect(refused.Stderr).To(ContainSubstring("exceeded quota: payments"))
	kubectl(ctx, "apply", "-f", "test/headlamp/testdata/search.yaml")
	kubectl(ctx, "wait", "--for=jsonpath={.status.waiting[0].kind}=ReplicaSet", "lrq/payments", "-n", "checkout", "--timeout=60s")

	kubectl(ctx, "wait", "--for=jsonpath={.status.peaks[0].month.amount}", "crq/payments", "--timeout=60s")

	kubectl(ctx, "create", "rolebinding", "owners", "--clusterrole=project-owner", "--user="+owner, "-n", "checkout")
	Eventually(ctx, func(ctx context.Context) (string, error) {
		result, err := cluster.Kubectl(ctx, nil, "auth", "can-i", "list", "localresourcequotas", "-n", "checkout", "--as="+owner)
		return result.Stdout, err
	}).Should(ContainSubstring("yes"))
}

// proxy starts a kubectl proxy with the rights of the kubeconfig, and returns its URL. It
// serves the API below the path at which Headlamp's server does, and the built pages.
func proxy(ctx context.Context, name, kubeconfig string) string {
	GinkgoHelper()
	port := suite.FreePort()
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	_, err := cluster.StartProgram(ctx, harness.ProgramOptions{
		Name: "proxy-" + name, Path: cluster.KubectlPath(),
		Args: []string{
			"proxy", "--kubeconfig", kubeconfig, fmt.Sprintf("--port=%d", port), "--api-prefix=/clusters/main/",
			"--www=" + filepath.Join(plugin, "dist-host"), "--www-prefix=/",
		},
		ReadyURL: url + "/clusters/main/readyz",
	})
	Expect(err).NotTo(HaveOccurred())
	return url
}

// kubectl runs kubectl as admin.
func kubectl(ctx context.Context, args ...string) {
	GinkgoHelper()
	suite.Kubectl(ctx, cluster, args...)
}
