// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

// RepositoryRoot returns the repository's root directory.
func RepositoryRoot() string {
	GinkgoHelper()
	root, err := harness.RepositoryRoot()
	Expect(err).NotTo(HaveOccurred())
	return root
}

// FreePort returns a loopback port that nobody listens on.
func FreePort() int {
	GinkgoHelper()
	port, err := harness.FreePort()
	Expect(err).NotTo(HaveOccurred())
	return port
}

// Operator returns the path of the operator to test: MANAGER_BINARY, or one that is
// built for the suite.
func Operator(ctx context.Context) string {
	GinkgoHelper()
	binary, err := harness.OperatorBinary(ctx, GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	return binary
}

// BuildPlugin builds the plugin of kubectl into the directory, and returns its path.
func BuildPlugin(ctx context.Context, dir string) string {
	GinkgoHelper()
	return Build(ctx, dir, "./cmd/kubectl-crq")
}

// Build builds a program of this repository into the directory, and returns its path.
func Build(ctx context.Context, dir, program string) string {
	GinkgoHelper()
	path := filepath.Join(dir, filepath.Base(program))
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", path, program)
	build.Dir = RepositoryRoot()
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as make build does
	output, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
	return path
}

// NextRelease returns the file that has go build take the next release's encodings for this
// one's, as its flag -overlay.
func NextRelease(dir string) string {
	GinkgoHelper()
	root := RepositoryRoot()
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {
		filepath.Join(root, "internal", "ledgerstore", "release.go"): filepath.Join(root, "test", "upgrade", "testdata", "nextrelease.go"),
	}})
	Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(dir, "overlay.json")
	Expect(os.WriteFile(path, overlay, 0o600)).To(Succeed())
	return path
}
