// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

const (
	developmentPage = "docs/development.md"
	// inACopy is why the page's suite doesn't run a block that this test runs.
	inACopy = "TestTheFirstChange runs it in a copy"
	// changedPackage is the only one that the page's blocks need.
	changedPackage = "internal/ledger"
)

// The example of docs/development.md is followed in a copy of the package that it changes,
// and leaves the copy as it was. It needs no API server, so it is a test of its own.
func TestTheFirstChange(t *testing.T) {
	root, err := harness.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, developmentPage))
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := parse(page)
	if err != nil {
		t.Fatal(err)
	}
	reader := newNewcomer(t, root)
	followed := 0
	for _, block := range blocks {
		if block.unrun != inACopy {
			continue
		}
		followed++
		if block.kind == shell { // whole, because a patch has many lines
			reader.runs(t, block.line, command{line: block.text})
			continue
		}
		for _, command := range block.commands() {
			reader.runs(t, block.line, command)
		}
	}
	if followed < 5 {
		t.Errorf("%s has %d blocks that are marked %q, which are too few for an example", developmentPage, followed, inACopy)
	}
	before, after := contents(t, filepath.Join(root, changedPackage)), contents(t, filepath.Join(reader.dir, changedPackage))
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the example leaves %s changed (-before,+after):\n%s", changedPackage, diff)
	}
}

// newcomer follows the page in a copy of the repository.
type newcomer struct {
	dir string
	env []string
}

func newNewcomer(t *testing.T, root string) newcomer {
	t.Helper()
	n := newcomer{dir: t.TempDir()}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(n.dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(n.dir, changedPackage), os.DirFS(filepath.Join(root, changedPackage))); err != nil {
		t.Fatal(err)
	}
	flags, err := exec.CommandContext(t.Context(), "go", "env", "GOFLAGS").Output()
	if err != nil {
		t.Fatal(err)
	}
	// As make builds whatever the race detector has nothing to find in, so that hardly
	// anything is compiled for this test alone.
	n.env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS="+strings.TrimSpace(string(flags))+" -trimpath -vet=off")
	n.runs(t, 0, command{line: "git init --quiet && git add --all"})
	return n
}

// runs executes a command line. It must fail if the page shows a test that fails.
func (n newcomer) runs(t *testing.T, line int, command command) {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", command.line)
	shell.Dir, shell.Env = n.dir, n.env
	output, err := shell.CombinedOutput()
	if failed, want := err != nil, strings.Contains(command.output, "FAIL"); failed != want {
		t.Fatalf("%s:%d: %s\nfails: %t (%v), want %t:\n%s", developmentPage, line, command.line, failed, err, want, output)
	}
	if strings.TrimSpace(command.output) != "" && !same(command.output, string(output)) {
		t.Fatalf("%s:%d: %s prints\n%s\nwhere the page shows\n%s", developmentPage, line, command.line, output, command.output)
	}
}

// contents returns the files of a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(found) == 0 {
		t.Fatalf("%s has the files %v: %v", dir, found, err)
	}
	files := map[string]string{} // name -> content
	for _, path := range found {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(path)] = string(content)
	}
	return files
}
