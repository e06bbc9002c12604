// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

const (
	stampFile   = ".stamp"
	versionsDir = "versions"
	// mirrorOff is the value of -mirror with which nothing is downloaded.
	mirrorOff = "off"
)

// binaryNames are the names that envtest expects.
func binaryNames() []string {
	return []string{etcdName, "kube-apiserver", "kube-controller-manager", "kubectl"}
}

const etcdName = "etcd"

// plane describes the control plane that is wanted.
type plane struct {
	kubernetes, etcd string
	// goos and goarch are the platform, as releases name it.
	goos, goarch string
	// kubernetesDir is the directory of the go.mod that pins Kubernetes. Etcd's is this directory.
	kubernetesDir string
	// goVersion, kubernetesHash and etcdHash say what a build is made from.
	goVersion, kubernetesHash, etcdHash string

	mirror, cache string
	sums          sums
}

func describe(ctx context.Context, o options) (plane, error) {
	p := plane{goos: runtime.GOOS, goarch: runtime.GOARCH, kubernetesDir: ".", mirror: strings.TrimSuffix(o.mirror, "/"), cache: o.cache}
	var err error
	if o.kubernetes != "" {
		if p.kubernetesDir, err = versionDir(o.kubernetes); err != nil {
			return p, err
		}
	}
	if err := checkMirror(p.mirror); err != nil {
		return p, err
	}
	if p.cache == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return p, fmt.Errorf("finding a place for downloads: %w; name one with -cache", err)
		}
		p.cache = filepath.Join(base, "shared-quota-operator", "controlplane")
	}
	if p.sums, err = readSums(o.sums); err != nil {
		return p, err
	}
	if p.kubernetes, err = goCommand(ctx, p.kubernetesDir, "list", "-m", "-f", "{{.Version}}", kubernetesModule); err != nil {
		return p, err
	}
	if p.etcd, err = goCommand(ctx, ".", "list", "-m", "-f", "{{.Version}}", etcdPackage); err != nil {
		return p, err
	}
	if p.goVersion, err = goCommand(ctx, ".", "env", "GOVERSION"); err != nil {
		return p, err
	}
	if p.kubernetesHash, err = hashInputs(p.kubernetesDir); err != nil {
		return p, err
	}
	p.etcdHash, err = hashInputs(".")
	return p, err
}

// pinnedVersions are the directories below versions/.
func pinnedVersions() ([]string, error) {
	known, err := filepath.Glob(filepath.Join(versionsDir, "*", "go.mod"))
	var names []string
	for _, file := range known {
		names = append(names, filepath.Base(filepath.Dir(file)))
	}
	return names, err
}

// versionDir is where the named version of Kubernetes is pinned.
func versionDir(name string) (string, error) {
	names, err := pinnedVersions()
	if err != nil {
		return "", err
	}
	if !slices.Contains(names, name) {
		return "", fmt.Errorf(
			"version %q of Kubernetes isn't pinned here; leave it out, or name one of %s", name, strings.Join(names, ", "))
	}
	return filepath.Join(versionsDir, name), nil
}

func checkMirror(mirror string) error {
	if mirror == "" || mirror == mirrorOff {
		return nil
	}
	parsed, err := url.Parse(mirror)
	if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" {
		return fmt.Errorf("the mirror %q must be an http or https URL, or %s", mirror, mirrorOff)
	}
	return nil
}

// hashInputs covers what a build is made from, besides Go itself.
func hashInputs(dir string) (string, error) {
	sum := sha256.New()
	for _, file := range []string{filepath.Join(dir, "go.mod"), filepath.Join(dir, "go.sum"), "build.go"} {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		sum.Write(content)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// built is the origin of a binary that is built from the modules.
func (p plane) built(name string) string {
	hash := p.kubernetesHash
	if name == etcdName {
		hash = p.etcdHash
	}
	return fmt.Sprintf("built by %s for %s/%s from %s", p.goVersion, p.goos, p.goarch, hash)
}

// downloaded is the origin of a binary of an official release; empty if no sum
// of it is recorded.
func (p plane) downloaded(name string) string {
	file := p.published(name)
	sum := p.sums[file]
	if sum == "" {
		return ""
	}
	return fmt.Sprintf("downloaded as %s with SHA-256 %s", file, sum)
}

// upToDate reports whether the directory has all binaries, each either built
// or downloaded as it would be now.
func (p plane) upToDate(out string) bool {
	content, err := os.ReadFile(filepath.Join(out, stampFile))
	if err != nil {
		return false
	}
	origins := map[string]string{}
	for line := range strings.Lines(string(content)) {
		name, origin, _ := strings.Cut(strings.TrimSpace(line), " ")
		origins[name] = origin
	}
	for _, name := range binaryNames() {
		have := origins[name]
		if have != p.built(name) && have != cmp.Or(p.downloaded(name), "none") {
			return false
		}
		if _, err := os.Stat(filepath.Join(out, name)); err != nil {
			return false
		}
	}
	return true
}

// writeStamp names the origin of each binary in the directory.
func (p plane) writeStamp(dir string, built []string) error {
	var stamp strings.Builder
	for _, name := range binaryNames() {
		origin := p.downloaded(name)
		if slices.Contains(built, name) {
			origin = p.built(name)
		}
		fmt.Fprintf(&stamp, "%s %s\n", name, origin)
	}
	return os.WriteFile(filepath.Join(dir, stampFile), []byte(stamp.String()), 0o644)
}
