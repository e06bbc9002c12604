// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const kubectlName = "kubectl"

// KubectlResult is what one call of kubectl came to.
type KubectlResult struct {
	Stdout   string
	Stderr   string
	ExitCode int
}

// Kubectl runs the control plane's own kubectl as admin. stdin may be nil. An
// exit code other than 0 is a result and no error; the error is for a kubectl
// that could not be run, or was killed because ctx ended.
func (c *Cluster) Kubectl(ctx context.Context, stdin io.Reader, args ...string) (KubectlResult, error) {
	return c.KubectlIn(ctx, c.dir, stdin, args...)
}

// KubectlIn is Kubectl run in the directory dir, which relative file names in
// args start from.
func (c *Cluster) KubectlIn(ctx context.Context, dir string, stdin io.Reader, args ...string) (KubectlResult, error) {
	return c.runIn(ctx, dir, stdin, c.asset(kubectlName), args...)
}

// Shell runs a command line in the directory dir, as a person would type it. Its
// kubectl is that of Kubectl.
func (c *Cluster) Shell(ctx context.Context, dir, line string) (KubectlResult, error) {
	return c.runIn(ctx, dir, nil, "/bin/sh", "-c", line)
}

func (c *Cluster) runIn(ctx context.Context, dir string, stdin io.Reader, path string, args ...string) (KubectlResult, error) {
	name := c.uniqueName(filepath.Base(path))
	defer c.watchdog.forget(name)
	var stdout, stderr strings.Builder
	cmd := c.watchdog.command(ctx, name, path, args...)
	cmd.Dir, cmd.Env = dir, c.kubectlEnv()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr

	err := cmd.Run()
	result := KubectlResult{Stdout: stdout.String(), Stderr: stderr.String(), ExitCode: cmd.ProcessState.ExitCode()}
	switch exit := (*exec.ExitError)(nil); {
	case ctx.Err() != nil:
		return result, fmt.Errorf("running %s %s: %w", filepath.Base(path), strings.Join(args, " "), ctx.Err())
	case errors.As(err, &exit) && exit.Exited():
		return result, nil
	case err != nil:
		return result, fmt.Errorf("running %s %s: %w", filepath.Base(path), strings.Join(args, " "), err)
	}
	return result, nil
}

// KubectlPath is the path of the control plane's own kubectl.
func (c *Cluster) KubectlPath() string {
	return c.asset(kubectlName)
}

// kubectlEnv keeps kubectl away from the files of whoever runs the program.
func (c *Cluster) kubectlEnv() []string {
	path := filepath.Dir(c.KubectlPath())
	if c.options.PluginDir != "" {
		path = c.options.PluginDir + string(os.PathListSeparator) + path
	}
	return append(os.Environ(),
		"KUBECONFIG="+c.Kubeconfig(),
		"KUBECACHEDIR="+filepath.Join(c.dir, "kubectl-cache"),
		"KUBECTL_KUBERC=false",
		"PATH="+path+string(os.PathListSeparator)+os.Getenv("PATH"),
	)
}
