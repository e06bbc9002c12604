// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	kubernetesModule = "k8s.io/kubernetes"
	etcdPackage      = "go.etcd.io/etcd/server/v3"
)

// build builds the named binaries from their modules.
func build(ctx context.Context, p plane, names []string, dir string) error {
	parts := map[string][]string{p.kubernetesDir: {}, ".": {}} // directory -> packages to build there
	for _, name := range names {
		if name == etcdName {
			parts["."] = append(parts["."], etcdPackage)
		} else {
			parts[p.kubernetesDir] = append(parts[p.kubernetesDir], kubernetesModule+"/cmd/"+name)
		}
	}
	estimate := "five to ten minutes"
	if slices.Equal(names, []string{etcdName}) {
		estimate = "a few minutes"
	}
	fmt.Printf("Building %s from the Go modules: %s on two cores the first time.\n", strings.Join(names, ", "), estimate)
	ctx, cancel := context.WithTimeout(ctx, buildLimit)
	defer cancel()
	for from, packages := range parts {
		if len(packages) == 0 {
			continue
		}
		if err := goBuild(ctx, from, dir, p.kubernetes, packages); err != nil {
			return err
		}
	}
	if slices.Contains(names, etcdName) {
		// go build names the binary after its package.
		return os.Rename(filepath.Join(dir, path.Base(path.Dir(etcdPackage))), filepath.Join(dir, etcdName))
	}
	return nil
}

func goBuild(ctx context.Context, from, dir, version string, packages []string) error {
	out, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	major, minor, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	const pkg = "k8s.io/component-base/version"
	ldflags := fmt.Sprintf("-s -w -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s -X %[1]s.gitTreeState=clean",
		pkg, version, major, minor)
	done := make(chan struct{})
	defer close(done)
	go tellTime(done)
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", ldflags, "-o", out + string(filepath.Separator)}
	_, err = goCommand(ctx, from, append(args, packages...)...)
	return err
}

// tellTime says now and then how long it takes, until done is closed.
func tellTime(done <-chan struct{}) {
	start, ticker := time.Now(), time.NewTicker(30*time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			fmt.Printf("  building for %s\n", time.Since(start).Round(time.Second))
		}
	}
}

func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, buildEnvironment()
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, exit.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

func buildEnvironment() []string {
	return append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
}
