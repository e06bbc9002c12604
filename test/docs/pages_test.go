// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

// pages returns README.md and all pages of docs/, by their path in the repository.
func pages() []string {
	root, err := harness.RepositoryRoot()
	if err != nil {
		panic(err) // the tree of specs can't be made without
	}
	found, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		panic(err)
	}
	paths := []string{"README.md"}
	for _, path := range found {
		paths = append(paths, filepath.Join("docs", filepath.Base(path)))
	}
	return paths
}

var _ = Describe("The page", func() {
	for _, path := range pages() {
		It(path, func(ctx SpecContext) {
			page, err := os.ReadFile(filepath.Join(root, path))
			Expect(err).NotTo(HaveOccurred())
			blocks, err := parse(page)
			Expect(err).NotTo(HaveOccurred())
			if !anyRun(blocks) {
				return // it was read, and tells to do nothing
			}
			installed := install(ctx)
			for _, block := range blocks {
				By(fmt.Sprintf("%s:%d, %s", path, block.line, block.kind))
				installed.follow(ctx, block)
			}
		}, SpecTimeout(pageTimeout))
	}
})

func anyRun(blocks []block) bool {
	for _, block := range blocks {
		if block.kind != prose && block.kind != additions && block.unrun == "" {
			return true
		}
	}
	return false
}

// follow does what a block tells to do.
func (i installation) follow(ctx context.Context, block block) {
	GinkgoHelper()
	switch {
	case block.kind == manifests && (block.unrun == "" || block.file() != ""):
		i.apply(ctx, block)
	case block.unrun != "" || block.kind == prose || block.kind == additions:
	default:
		for _, command := range block.commands() {
			i.perform(ctx, command)
		}
	}
}

// apply applies a yaml block, or writes the file that it names. What isn't run is
// written alone.
func (i installation) apply(ctx context.Context, block block) {
	GinkgoHelper()
	name, options := ".block.yaml", ""
	if file := block.file(); file != "" {
		name, options = file, " --dry-run=server"
	}
	Expect(os.WriteFile(filepath.Join(i.dir, name), []byte(block.text), 0o600)).To(Succeed())
	if block.unrun != "" {
		return
	}
	i.mustRun(ctx, "kubectl apply -f "+name+options)
}

// perform runs a command, and compares what it comes to with what the page shows.
func (i installation) perform(ctx context.Context, command command) {
	GinkgoHelper()
	judge := func(ctx context.Context) error {
		output, err := i.run(ctx, command.line)
		GinkgoWriter.Printf("$ %s\n%s", command.line, output)
		switch {
		case command.fails() && err == nil:
			return fmt.Errorf("%s: succeeds, where it should fail:\n%s", command.line, output)
		case !command.fails() && err != nil:
			return fmt.Errorf("%s: %w:\n%s", command.line, err, output)
		case strings.TrimSpace(command.output) != "" && !same(command.output, output):
			return fmt.Errorf("%s: prints\n%s\nwhere the page shows\n%s", command.line, output, command.output)
		default:
			return nil
		}
	}
	if command.reads() {
		Eventually(ctx, judge).Should(Succeed())
		return
	}
	Expect(judge(ctx)).To(Succeed())
}

// usesRepository tells whether a command is one for a clone of the repository.
func usesRepository(line string) bool {
	return strings.Contains(line, "config/") || strings.Contains(line, "test/docs/") || strings.HasPrefix(line, "make ")
}

// inPlace has make tell what it would do.
func inPlace(line string) string {
	if targets, ok := strings.CutPrefix(line, "make "); ok {
		return "make --dry-run " + targets + " >/dev/null"
	}
	return line
}
