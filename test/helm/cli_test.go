// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// helm is the command, with files of its own.
type helm struct {
	path string
	env  []string
}

// helmBinary returns the helm that HELM_BINARY names, or builds the one that is pinned.
func helmBinary(ctx context.Context) string {
	GinkgoHelper()
	if given := os.Getenv("HELM_BINARY"); given != "" {
		return given
	}
	path := filepath.Join(GinkgoT().TempDir(), "helm")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", path, "helm.sh/helm/v4/cmd/helm")
	build.Dir = filepath.Join(suite.RepositoryRoot(), "hack", "tools")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	output, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
	return path
}

func newHelm(path string) helm {
	dir := GinkgoT().TempDir()
	return helm{path: path, env: append(os.Environ(),
		"KUBECONFIG="+cluster.Kubeconfig(), "HELM_CACHE_HOME="+dir, "HELM_CONFIG_HOME="+dir, "HELM_DATA_HOME="+dir, "NO_COLOR=1",
		"PATH="+filepath.Dir(path)+":"+filepath.Dir(cluster.KubectlPath())+":"+os.Getenv("PATH"))}
}

// try runs helm in the repository's root, with values on standard input, and returns what it prints.
func (h helm) try(ctx context.Context, values string, args ...string) (stdout, stderr string, err error) {
	var out, errs strings.Builder
	run := exec.CommandContext(ctx, h.path, args...)
	run.Dir, run.Env, run.Stdin = suite.RepositoryRoot(), h.env, strings.NewReader(values)
	run.Stdout, run.Stderr = &out, &errs
	err = run.Run()
	return out.String(), errs.String(), err
}

// run runs helm, which must succeed.
func (h helm) run(ctx context.Context, values string, args ...string) string {
	GinkgoHelper()
	stdout, stderr, err := h.try(ctx, values, args...)
	Expect(err).NotTo(HaveOccurred(), "helm %v:\n%s%s", args, stdout, stderr)
	return stdout
}

// shell runs a command line of the documentation, or of what helm printed, in a directory.
func (h helm) shell(ctx context.Context, dir, line string) string {
	GinkgoHelper()
	run := exec.CommandContext(ctx, "bash", "-c", "set -euo pipefail; "+line)
	run.Dir, run.Env = dir, h.env
	output, err := run.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s\n%s", line, output)
	return string(output)
}

// objects are KIND/NAME -> object.
type objects map[string]*unstructured.Unstructured

// parse reads a stream of YAML documents.
func parse(stream string) objects {
	GinkgoHelper()
	found := objects{}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(stream)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return found
		}
		Expect(err).NotTo(HaveOccurred())
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal(document, &object.Object)).To(Succeed(), "%s", document)
		if object.Object == nil {
			continue // comments alone
		}
		name := object.GetKind() + "/" + object.GetName()
		Expect(found).NotTo(HaveKey(name))
		found[name] = object
	}
}

// render returns what the chart makes of values in a namespace, and its hooks apart.
func render(ctx context.Context, namespace, values string) (rendered, hooks objects) {
	GinkgoHelper()
	stream := cli.run(ctx, values, "template", "shared-quota", chartDir, "--namespace", namespace, "--values", "-")
	rendered, hooks = parse(stream), objects{}
	for name, object := range rendered {
		if object.GetAnnotations()["helm.sh/hook"] != "" {
			hooks[name] = object
			delete(rendered, name)
		}
	}
	return rendered, hooks
}
