// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// outcome is what one call came to.
type outcome struct {
	stdout, stderr string
	status         int
}

// crq runs kubectl crq as the administrator.
func crq(ctx context.Context, args ...string) outcome {
	GinkgoHelper()
	return crqAs(ctx, cluster.Kubeconfig(), args...)
}

// crqAs runs kubectl crq with the kubeconfig of somebody.
func crqAs(ctx context.Context, kubeconfig string, args ...string) outcome {
	GinkgoHelper()
	return kubectl(ctx, kubeconfig, nil, append([]string{"crq"}, args...)...)
}

// mustCrq runs kubectl crq as the administrator, and returns what it prints.
func mustCrq(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return mustSucceed(crq(ctx, args...))
}

// mustKubectl runs kubectl as the administrator, and returns what it prints.
func mustKubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return mustSucceed(kubectl(ctx, cluster.Kubeconfig(), nil, args...))
}

func mustSucceed(got outcome) string {
	GinkgoHelper()
	Expect(got.status).To(BeZero(), "%s%s", got.stdout, got.stderr)
	return got.stdout
}

// kubectl runs the real kubectl with the plugin in PATH, and with more
// environment variables, each NAME=VALUE.
func kubectl(ctx context.Context, kubeconfig string, env []string, args ...string) outcome {
	GinkgoHelper()
	cmd := kubectlCommand(ctx, kubeconfig, args...)
	cmd.Env = append(cmd.Env, env...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		Expect(err).NotTo(HaveOccurred())
	}
	return outcome{stdout: stdout.String(), stderr: stderr.String(), status: cmd.ProcessState.ExitCode()}
}

// kubectlCommand keeps kubectl away from the files of whoever runs the tests.
// It ends with ctx at the latest.
func kubectlCommand(ctx context.Context, kubeconfig string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, cluster.KubectlPath(), args...)
	cmd.Dir = cluster.Dir()
	cmd.Env = append(os.Environ(),
		"PATH="+pluginDir+string(os.PathListSeparator)+os.Getenv("PATH"),
		"KUBECONFIG="+kubeconfig,
		"KUBECACHEDIR="+filepath.Join(cluster.Dir(), "kubectl-cache"),
		"KUBECTL_KUBERC=false",
	)
	return cmd
}
