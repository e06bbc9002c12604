// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Command controlplane provides the Kubernetes control plane that tests, the
// demo and benchmarks run against: kube-apiserver, etcd,
// kube-controller-manager and kubectl, in the versions that go.mod pins, here
// or in one of versions/.
//
// It downloads the official binaries whose sums SHA256SUMS records. It builds
// from the Go modules what can't be downloaded. A stamp next to the binaries
// names what each of them is, so that a second call returns at once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.out, "out", "../../bin/k8s", "directory that receives the binaries")
	flag.StringVar(&o.kubernetes, "kubernetes", "", "a directory of versions/, such as v1.30; the version of go.mod if empty")
	flag.StringVar(&o.mirror, "mirror", "",
		"URL of a copy of the official binaries, laid out as in SHA256SUMS; off to build everything from the modules")
	flag.StringVar(&o.sums, "sums", "SHA256SUMS", "file with the SHA-256 sums of the official binaries")
	flag.StringVar(&o.cache, "cache", "", "directory for downloads; if empty, one in the user's cache directory, which all clones share")
	record := flag.Bool("record", false,
		"write to -sums what the places of the official binaries say of every pinned version, and do nothing else")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // A second signal ends the program at once.
	var err error
	if *record {
		err = recordSums(ctx, o)
	} else {
		err = run(ctx, o, build)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

// buildLimit bounds one build. On a busy machine one took 55 minutes.
const buildLimit = 2 * time.Hour

type options struct {
	out, kubernetes, mirror, sums, cache string
}

// builder fills the directory with the named binaries, from the modules.
type builder func(ctx context.Context, p plane, names []string, dir string) error

// run provides the binaries in o.out, unless they are there.
func run(ctx context.Context, o options, build builder) error {
	p, err := describe(ctx, o)
	if err != nil {
		return err
	}
	if p.upToDate(o.out) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
		return err
	}
	unlock, err := lock(ctx, filepath.Clean(o.out)+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	if p.upToDate(o.out) { // Another process made it meanwhile.
		return nil
	}
	return p.provide(ctx, o.out, build)
}

// provide replaces the directory by one with all binaries. It is filled aside
// and renamed, so that an interruption leaves nothing that looks complete.
func (p plane) provide(ctx context.Context, out string, build builder) error {
	work, err := os.MkdirTemp(filepath.Dir(out), ".k8s-build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)

	missing := p.download(ctx, work)
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(missing) > 0 {
		if err := build(ctx, p, missing, work); err != nil {
			return fmt.Errorf("building the control plane: %w", err)
		}
	}
	if err := p.writeStamp(work, missing); err != nil {
		return err
	}
	if err := os.Chmod(work, 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	return os.Rename(work, out)
}

// lock waits until no other process has the file locked. That of a process that ended is free.
func lock(ctx context.Context, name string) (unlock func(), err error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	told := false
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil // Nothing was written to it.
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("locking %s: %w", name, err), file.Close())
		}
		if !told {
			fmt.Printf("Waiting for another process that has %s.\n", name)
			told = true
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), file.Close())
		case <-time.After(100 * time.Millisecond):
		}
	}
}
