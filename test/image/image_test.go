// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

// maxSize bounds the binary, in bytes.
const maxSize = 100 << 20

func read(t *testing.T, name string) string {
	t.Helper()
	root, err := harness.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// instructions of the Dockerfile, each in one line.
func instructions(t *testing.T) []string {
	t.Helper()
	var instructions []string
	for line := range strings.Lines(strings.ReplaceAll(read(t, "Dockerfile"), "\\\n", " ")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			instructions = append(instructions, line)
		}
	}
	return instructions
}

func TestTheImageNeedsNothingAndMayNothing(t *testing.T) {
	lines := instructions(t)
	last := slices.Collect(func(yield func(string) bool) {
		from := false
		for _, line := range lines {
			from = from || line == "FROM scratch"
			if from && !regexp.MustCompile(`^(ARG|LABEL|FROM)`).MatchString(line) && !yield(line) {
				return
			}
		}
	})
	want := []string{
		"COPY --from=builder /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/",
		"COPY --from=builder /manager /manager",
		"USER 65532:65532",
		`ENTRYPOINT ["/manager"]`,
	}
	if diff := cmp.Diff(want, last); diff != "" {
		t.Errorf("the last stage (-want,+got):\n%s", diff)
	}
	deployment := read(t, "config/manager/deployment.yaml")
	for _, line := range []string{"runAsUser: 65532", "runAsNonRoot: true", "readOnlyRootFilesystem: true"} {
		if !strings.Contains(deployment, line) {
			t.Errorf("the Deployment lacks %s", line)
		}
	}
}

func TestGoIsTheSameInTheImage(t *testing.T) {
	module := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "go.mod"))
	image := regexp.MustCompile(`(?m)^ARG GO_IMAGE=golang:(\d+\.\d+)`).FindStringSubmatch(read(t, "Dockerfile"))
	if module == nil || image == nil || module[1] != image[1] {
		t.Errorf("go.mod has %q, the Dockerfile %q", module, image)
	}
}

// copyContext copies what .dockerignore leaves of the repository: all is left out
// but what a later line with an exclamation mark names.
func copyContext(t *testing.T, to string) {
	t.Helper()
	root, err := harness.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for line := range strings.Lines(read(t, ".dockerignore")) {
		if pattern, ok := strings.CutPrefix(strings.TrimSpace(line), "!"); ok {
			found, err := filepath.Glob(filepath.Join(root, pattern))
			if err != nil || len(found) == 0 {
				t.Fatalf(".dockerignore keeps %s, which is nothing: %v", pattern, err)
			}
			kept = append(kept, found...)
		}
	}
	for _, path := range kept {
		target := filepath.Join(to, filepath.Base(path))
		info, err := os.Stat(path)
		if err == nil && info.IsDir() {
			err = os.CopyFS(target, os.DirFS(path))
		} else if err == nil {
			var content []byte
			if content, err = os.ReadFile(path); err == nil {
				err = os.WriteFile(target, content, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// build runs the command of the Dockerfile in a directory, for this machine's
// architecture.
func build(t *testing.T, dir, to string) error {
	t.Helper()
	at := slices.IndexFunc(instructions(t), func(line string) bool { return strings.Contains(line, "go build") })
	if at < 0 {
		t.Fatal("the Dockerfile builds nothing")
	}
	line := strings.TrimPrefix(instructions(t)[at], "RUN ")
	command := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(line, "-o /manager", "-o "+to, 1))
	command.Dir, command.Stderr = dir, os.Stderr
	command.Env = append(os.Environ(), "TARGETOS=linux", "TARGETARCH=", "VERSION=v0.0.0-test", "GOFLAGS=", "GOWORK=off")
	return command.Run()
}

func TestTheBinaryIsStaticSmallAndTheSameTwice(t *testing.T) {
	var group errgroup.Group
	binaries := [2]string{}
	for i := range binaries {
		// Directories of different names and depths: none may be in the binary.
		dir := filepath.Join(t.TempDir(), strings.Repeat("deeper/", i), "src")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		copyContext(t, dir)
		binaries[i] = filepath.Join(t.TempDir(), "manager")
		group.Go(func() error { return build(t, dir, binaries[i]) })
	}
	if err := group.Wait(); err != nil {
		t.Fatalf("building as the Dockerfile does: %v", err)
	}
	first, err := os.ReadFile(binaries[0])
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(binaries[1])
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(first, second) {
		t.Error("two builds of the same inputs differ")
	}
	if len(first) > maxSize {
		t.Errorf("the binary has %d bytes, more than %d", len(first), maxSize)
	}
	t.Logf("the binary has %d bytes", len(first))
	wantStatic(t, binaries[0])
	version, err := exec.CommandContext(t.Context(), binaries[0], "--version").Output()
	if err != nil || !strings.Contains(string(version), "v0.0.0-test") {
		t.Errorf("--version says %q: %v", version, err)
	}
}

func wantStatic(t *testing.T, path string) {
	t.Helper()
	binary, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close()
	if libraries, err := binary.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("it needs %v: %v", libraries, err)
	}
	for _, program := range binary.Progs {
		if program.Type == elf.PT_INTERP {
			t.Error("it needs a dynamic linker")
		}
	}
}
