// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Command controlplane builds the Kubernetes control plane that tests, the
// demo and benchmarks run against: kube-apiserver, etcd,
// kube-controller-manager and kubectl, from the Go modules and versions that
// this directory's go.mod pins.
//
// Building takes minutes the first time. A stamp next to the binaries names
// what they were built from, so that a second call returns at once.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	kubernetesModule = "k8s.io/kubernetes"
	etcdPackage      = "go.etcd.io/etcd/server/v3"
	stampFile        = ".stamp"
)

// binaries maps the name that envtest expects to the package that builds it.
var binaries = map[string]string{
	"kube-apiserver":          kubernetesModule + "/cmd/kube-apiserver",
	"kube-controller-manager": kubernetesModule + "/cmd/kube-controller-manager",
	"kubectl":                 kubernetesModule + "/cmd/kubectl",
	"etcd":                    etcdPackage,
}

func main() {
	out := flag.String("out", "../../bin/k8s", "directory that receives the binaries")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *out)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out string) error {
	want, err := wantStamp(ctx)
	if err != nil {
		return err
	}
	if upToDate(out, want) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	// Built aside and renamed, so that an interrupted build leaves nothing that looks complete.
	work, err := os.MkdirTemp(filepath.Dir(out), ".k8s-build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := buildAll(ctx, work); err != nil {
		return fmt.Errorf("building the control plane: %w", err)
	}
	if err := os.WriteFile(filepath.Join(work, stampFile), want, 0o644); err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	return os.Rename(work, out)
}

// buildAll fills the directory with all binaries, under the names that envtest
// expects.
func buildAll(ctx context.Context, work string) error {
	version, err := goCommand(ctx, "list", "-m", "-f", "{{.Version}}", kubernetesModule)
	if err != nil {
		return err
	}
	total, err := countPackages(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("Building the Kubernetes %s control plane (once; about six minutes on two cores).\n", version)
	if err := build(ctx, work, version, total); err != nil {
		return err
	}
	for name, pkg := range binaries {
		// go build names the binary after its package; etcd's is named "server".
		if built := binaryName(pkg); built != name {
			if err := os.Rename(filepath.Join(work, built), filepath.Join(work, name)); err != nil {
				return err
			}
		}
	}
	return os.Chmod(work, 0o755)
}

// wantStamp describes everything the binaries are built from.
func wantStamp(ctx context.Context) ([]byte, error) {
	sum := sha256.New()
	for _, file := range []string{"go.mod", "go.sum", "main.go"} {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		sum.Write(content)
	}
	goVersion, err := goCommand(ctx, "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%s %s/%s %s\n", goVersion, runtime.GOOS, runtime.GOARCH, hex.EncodeToString(sum.Sum(nil))), nil
}

func upToDate(out string, want []byte) bool {
	have, err := os.ReadFile(filepath.Join(out, stampFile))
	if err != nil || !bytes.Equal(have, want) {
		return false
	}
	for name := range binaries {
		if _, err := os.Stat(filepath.Join(out, name)); err != nil {
			return false
		}
	}
	return true
}

func countPackages(ctx context.Context) (int, error) {
	args := []string{"list", "-deps"}
	for _, pkg := range binaries {
		args = append(args, pkg)
	}
	fmt.Println("Fetching the modules of the control plane ...")
	list, err := goCommand(ctx, args...)
	return strings.Count(list, "\n") + 1, err
}

func build(ctx context.Context, work, version string, total int) error {
	major, minor, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	const pkg = "k8s.io/component-base/version"
	ldflags := fmt.Sprintf("-s -w -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s -X %[1]s.gitTreeState=clean",
		pkg, version, major, minor)
	args := []string{"build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", ldflags, "-o", work + string(filepath.Separator)}
	for _, pkg := range binaries {
		args = append(args, pkg)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	failure := reportProgress(stderr, total)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w\n%s", err, strings.Join(failure, "\n"))
	}
	return nil
}

// reportProgress shows how many packages go build has compiled, and returns
// the lines of its output that are not package names.
func reportProgress(output io.Reader, total int) []string {
	var compiled atomic.Int64
	done := make(chan struct{})
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		printProgress(&compiled, total, done)
	}()

	var rest []string
	scanner := bufio.NewScanner(output)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		line := scanner.Text()
		if strings.ContainsAny(line, " \t") {
			rest = append(rest, line)
			continue
		}
		compiled.Add(1)
	}
	close(done)
	<-finished
	return rest
}

func printProgress(compiled *atomic.Int64, total int, done <-chan struct{}) {
	terminal := isTerminal(os.Stdout)
	interval := 15 * time.Second
	if terminal {
		interval = 500 * time.Millisecond
	}
	start := time.Now()
	show := func(end string) {
		fmt.Printf("  compiled %d of %d packages, %s%s", compiled.Load(), total, time.Since(start).Round(time.Second), end)
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			if terminal {
				fmt.Print("\r")
			}
			show(", done      \n")
			return
		case <-ticker.C:
			if terminal {
				fmt.Print("\r")
				show("   ")
			} else {
				show("\n")
			}
		}
	}
}

func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// binaryName is the name that go build gives the binary of a main package: its
// import path's last element that is not a major version.
func binaryName(pkg string) string {
	base := path.Base(pkg)
	if strings.HasPrefix(base, "v") && strings.Trim(base[1:], "0123456789") == "" {
		return path.Base(path.Dir(pkg))
	}
	return base
}

func goCommand(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, exit.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}
