// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench measures what a shared quota costs on a real control plane. Each subcommand
// explains itself where it begins: pods.go, scale.go, page.go.
//
// What the subcommands share is in cluster.go, goals.go, metrics.go, profile.go and wait.go.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// exitUsage is also that of flags that can't be parsed.
const exitUsage = 2

const help = `Usage of bench:
  bench pods   measures what admission costs, beside its alternatives
  bench scale  measures how counting grows with the number of objects
  bench page   renders docs/benchmarks.md from what both have stored
bench COMMAND -h lists the flags of a command.
`

func main() {
	// What the clients and the control plane's helpers log is of no use here.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	commands := map[string]func(args []string) int{"pods": runPods, "scale": runScale, "page": runPage}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprint(os.Stderr, help)
		os.Exit(exitUsage)
	}
	os.Exit(commands[os.Args[1]](os.Args[2:]))
}

// resultsDir has the figures that docs/benchmarks.md shows.
const resultsDir = "hack/bench/results"

// measuring is what the commands are told that measure on a control plane of their own.
type measuring struct {
	manager, assets, json, profiles string
}

func (m *measuring) bind(flags *flag.FlagSet) {
	flags.StringVar(&m.manager, "manager", "bin/manager", "the operator's binary")
	flags.StringVar(&m.assets, "assets", cmp.Or(os.Getenv("KUBEBUILDER_ASSETS"), "bin/k8s"),
		"directory of etcd, kube-apiserver, kube-controller-manager and kubectl")
	flags.StringVar(&m.profiles, "profiles", "", "directory for profiles of the API server and the operator; empty for none")
	flags.StringVar(&m.json, "json", os.Getenv("BENCH_JSON"),
		"file to write the figures to, as JSON; empty for that in "+resultsDir+" if everything was measured")
}

// keep writes the figures of a complete run to where the command page finds them.
func (m *measuring) keep(name string, figures any) error {
	stored := measuring{json: filepath.Join(resultsDir, name)}
	return stored.write(figures)
}

// write writes the figures for a program to read, where that was asked for.
func (m *measuring) write(figures any) error {
	if m.json == "" {
		return nil
	}
	text, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the figures: %w", err)
	}
	if err := os.WriteFile(m.json, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the figures: %w", err)
	}
	return nil
}

// signalled returns a context that ends with the first signal. The second one ends the program.
func signalled() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	return ctx
}

// ended returns the exit code of a command, and prints why it failed.
func ended(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(os.Stderr, "bench: %v\n", err)
	return 1
}
