// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// packageName is the operator's in a catalog, and begins the names of its ClusterServiceVersions.
const packageName = "shared-quota-operator"

// release is a version of the bundle, and the edges that lead to it, as flags of hack/tools/release.
type release struct {
	version string
	edges   []string
}

// releases are the versions that docs/olm.md makes, in this order.
var releases = []release{
	{version: "0.1.0"},
	{version: "0.2.0", edges: []string{"-replaces", "0.1.0"}},
	{version: "0.3.0", edges: []string{"-replaces", "0.1.0", "-skips", "0.2.0"}},
	{version: "0.4.0", edges: []string{"-replaces", "0.3.0", "-skip-range", ">=0.3.0 <0.4.0"}},
}

// csvOf returns the name of a version's ClusterServiceVersion.
func csvOf(version string) string { return packageName + ".v" + version }

// catalog is what opm serves.
type catalog struct {
	port    int
	serving *harness.Process
}

// offer has the catalog offer these releases from now on, and opm find nothing wrong with it.
func (c *catalog) offer(ctx context.Context, offered ...release) {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	bundles := make([]string, 0, len(offered))
	for _, one := range offered {
		bundles = append(bundles, one.bundle(ctx))
	}
	output(ctx, nil, tool("RELEASE_BINARY", ""), "catalog", "-bundles", strings.Join(bundles, ","), "-out", dir)
	opm := tool("OLM_BINARIES", "opm")
	rendered := output(ctx, nil, opm, append([]string{"render", "--output", "yaml"}, bundles...)...)
	Expect(os.WriteFile(filepath.Join(dir, "bundles.yaml"), rendered, 0o600)).To(Succeed())
	output(ctx, nil, opm, "validate", dir)
	if c.serving != nil {
		Expect(c.serving.Stop()).To(Succeed())
	}
	profiles, err := harness.FreePort()
	Expect(err).NotTo(HaveOccurred())
	at := "127.0.0.1:" + strconv.Itoa(profiles)
	c.serving, err = cluster.StartProgram(ctx, harness.ProgramOptions{
		Name: "opm", Path: opm, ReadyURL: "http://" + at + "/debug/pprof/",
		Args: []string{"serve", dir, "--port", strconv.Itoa(c.port), "--pprof-addr", at, "--termination-log", filepath.Join(GinkgoT().TempDir(), "end")},
	})
	Expect(err).NotTo(HaveOccurred())
}

// bundle writes the release's bundle, as make bundle does, and returns its directory.
func (r release) bundle(ctx context.Context) string {
	GinkgoHelper()
	root, dir := suite.RepositoryRoot(), GinkgoT().TempDir()
	manifests := output(ctx, nil, tool("KUSTOMIZE_BINARY", ""), "build", filepath.Join(root, "config", "manifests"))
	output(ctx, manifests, tool("RELEASE_BINARY", ""), slices.Concat([]string{
		"bundle", "-version", r.version, "-channels", "candidate", "-default-channel", "candidate",
		"-image", "registry.example/shared-quota-operator:v" + r.version,
		"-icon", filepath.Join(root, "config", "manifests", "icon.svg"), "-out", dir,
	}, r.edges)...)
	return filepath.Join(dir, "bundle")
}

// source is config/olm/install.yaml, with the catalog that is served in the place of an image.
func (c *catalog) source() string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(suite.RepositoryRoot(), "config", "olm", "install.yaml"))
	Expect(err).NotTo(HaveOccurred())
	const image = "image: registry.example/shared-quota-catalog:latest"
	Expect(string(text)).To(ContainSubstring(image))
	return strings.Replace(string(text), image, fmt.Sprintf("address: 127.0.0.1:%d", c.port), 1)
}

// output runs a command and returns what it prints.
func output(ctx context.Context, stdin []byte, name string, args ...string) []byte {
	GinkgoHelper()
	var stderr strings.Builder
	run := exec.CommandContext(ctx, name, args...)
	run.Stdin, run.Stderr = strings.NewReader(string(stdin)), &stderr
	printed, err := run.Output()
	Expect(err).NotTo(HaveOccurred(), "%s %v:\n%s%s", name, args, printed, stderr.String())
	return printed
}
