// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestVersions(t *testing.T) {
	for text, want := range map[string]string{
		"1.2.3": "", "0.1.0-rc.1": "",
		"":        "VERSION is missing: name one, such as VERSION=1.2.3",
		"v1.2.3":  `VERSION "v1.2.3" begins with a v: write 1.2.3`,
		"1.2":     `VERSION "1.2" is no semantic version, such as 1.2.3 or 1.2.3-rc.1: `,
		"latest":  `VERSION "latest" is no semantic version, such as 1.2.3 or 1.2.3-rc.1: `,
		"1.2.3+b": `VERSION "1.2.3+b" has build metadata, which an image's tag can't hold: leave out +b`,
	} {
		_, err := parseVersion(text)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestImages(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0a", 32)
	for name, want := range map[string]bool{
		"shared-quota-operator:dev": true, "registry.example:5000/a/b:v1.2.3": true, "ghcr.io/a/b" + digest: true,
		"": false, "a/b": false, "A/b:1": false, "a:b|c": false, "a:b c": false, "a:b&": false, "https://a/b:1": false,
	} {
		if err := checkImage(name); (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestPlatforms(t *testing.T) {
	if err := checkPlatforms(wanted("linux/amd64,windows/arm64")); err != nil {
		t.Error(err)
	}
	err := checkPlatforms(wanted("linux/riscv64"))
	if err == nil || !strings.HasPrefix(err.Error(), `PLATFORMS: "linux/riscv64" is none of [linux/amd64 `) {
		t.Errorf("got %v", err)
	}
	if got := len(operator.platforms(nil)); got != 2 {
		t.Errorf("the operator has %d platforms, want 2", got)
	}
}

// The SBOM lists the sum of the operator's binary, which must be that of the image.
func TestTheImageIsBuiltAlike(t *testing.T) {
	dockerfile, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	want := `CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH     go build -trimpath -buildvcs=false -ldflags="` +
		operator.linked("$VERSION") + `" -o /manager ` + operator.pkg
	if !strings.Contains(strings.ReplaceAll(string(dockerfile), "\\\n", ""), want) {
		t.Errorf("the Dockerfile doesn't run %s", want)
	}
}

// A tree is what its tag names only if it is clean and has the tag.
func TestTheTreeIsThatOfTheTag(t *testing.T) {
	root := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), "git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		if text, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, text)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(strict bool, want ...string) {
		t.Helper()
		args := []string{"-version", "1.2.3", "-image", "a:b", "-root", root}
		if !strict {
			if err := checkTree(args); err != nil {
				t.Errorf("a release that isn't strict fails: %v", err)
			}
			return
		}
		err := checkTree(append(args, "-strict"))
		if (err == nil) != (len(want) == 0) {
			t.Fatalf("got %v, want %q", err, want)
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("got %v, want %q", err, part)
			}
		}
	}
	run("init", "-q")
	write("CHANGELOG.md", "# Changelog\n\n## [1.2.2]\n\nold\n")
	run("add", ".")
	run("commit", "-q", "-m", "first")
	check(false)
	check(true, "doesn't have the tag v1.2.3", "CHANGELOG.md has no section [1.2.3]")
	write("CHANGELOG.md", "# Changelog\n\n## [1.2.3] - today\n\nnew\n\n## [1.2.2]\n\nold\n")
	run("commit", "-q", "-a", "-m", "second")
	run("tag", "v1.2.3")
	check(true)
	write("more", "x")
	check(true, "the tree is dirty: 1 files differ from the commit, the first is more")
	if text, err := notes(root, "1.2.3"); err != nil || text != "new\n" {
		t.Errorf("notes: %q, %v", text, err)
	}
	if _, err := commitTime(filepath.Join(root, "missing")); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a repository: %v, want what git says", err)
	}
}
