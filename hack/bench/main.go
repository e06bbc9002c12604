// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench measures what a shared quota costs, against what limits
// nothing, the cheapest webhook there can be, and Kubernetes' own ResourceQuota.
//
// It starts the real control plane and each variant as processes of their own, in a network
// namespace in which the API server reaches a variant's replicas through a Service, as in a
// cluster. The variants take turns, so that what the machine does besides falls on all of
// them. Absolute figures are this machine's; the ratios
// are what it is for.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

type options struct {
	manager string
	// compare is another build's binary, to measure beside the manager's.
	compare string
	assets  string
	rounds  int
	seconds int
	only    string
	// variants is a regular expression of those that take turns.
	variants string
	keep     bool
	json     string
	// profiles is a directory for profiles.
	profiles string
	// config is the directory of what installs the operator.
	config string
	// allowAddress makes this program the webhook that allows everything.
	allowAddress string
	allowHealth  string
	certDir      string
}

func main() {
	var o options
	flag.StringVar(&o.manager, "manager", "bin/manager", "the operator's binary")
	flag.StringVar(&o.compare, "compare", "", "the binary of another build of the operator, to take turns with this one's")
	flag.StringVar(&o.assets, "assets", cmp.Or(os.Getenv("KUBEBUILDER_ASSETS"), "bin/k8s"),
		"directory of etcd, kube-apiserver, kube-controller-manager and kubectl")
	flag.IntVar(&o.rounds, "rounds", 3, "how many turns each variant takes")
	flag.IntVar(&o.seconds, "seconds", 4, "how long each turn measures")
	flag.StringVar(&o.only, "only", "", "regular expression of the scenarios to run; empty for all")
	flag.StringVar(&o.variants, "variants", "", "regular expression of the variants that take turns; empty for all")
	flag.StringVar(&o.json, "json", os.Getenv("BENCH_JSON"), "file to write the figures to, as JSON")
	flag.StringVar(&o.profiles, "profiles", "", "directory to write profiles of the API server and the operator to; costs a little")
	flag.BoolVar(&o.keep, "keep-logs", false, "leave the directory with all logs in place")
	flag.StringVar(&o.config, "config", "config", "directory of what installs the operator")
	flag.StringVar(&o.allowAddress, "allow-address", "", "internal: serve the webhook that allows everything at this address")
	flag.StringVar(&o.allowHealth, "allow-health", "", "internal: the address at which it is probed")
	flag.StringVar(&o.certDir, "cert-dir", "", "internal: its certificate")
	flag.Parse()
	log.SetLogger(logr.Discard())
	if o.allowAddress != "" {
		os.Exit(serve(func(ctx context.Context) error { return serveAllow(ctx, o.allowAddress, o.allowHealth, o.certDir) }))
	}
	os.Exit(harness.InNamespace(func() int {
		return serve(func(ctx context.Context) error { return run(ctx, o) })
	}))
}

// serve does something until it ends or a signal comes, and returns the exit code.
func serve(do func(context.Context) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // A second signal ends the program at once.
	if err := do(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, o options) error {
	only, err := regexp.Compile("(?i)" + o.only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	variants, err := regexp.Compile("(?i)" + o.variants)
	if err != nil {
		return fmt.Errorf("-variants: %w", err)
	}
	if o.rounds < 1 || o.seconds < 1 {
		return errors.New("-rounds and -seconds: want at least 1")
	}
	manager, err := filepath.Abs(o.manager)
	if err != nil {
		return err
	}
	if o.profiles != "" {
		if err := os.MkdirAll(o.profiles, 0o750); err != nil {
			return fmt.Errorf("-profiles: %w", err)
		}
	}
	return measure(ctx, o, manager, only, variants)
}

func measure(ctx context.Context, o options, manager string, only, variants *regexp.Regexp) (err error) {
	fmt.Println("Starting etcd and kube-apiserver in a network namespace ...")
	cluster, err := harness.Start(ctx, harness.Options{
		AssetsDir: o.assets, KeepDir: o.keep, CRDDirs: []string{}, Production: true,
		APIServerFlags: map[string]string{"max-mutating-requests-inflight": "2000"},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	world, err := newWorld(cluster, manager)
	if err != nil {
		return err
	}
	defer world.close()
	world.profiles, world.variants, world.compare = o.profiles, variants, o.compare
	if err := world.install(ctx, o.config); err != nil {
		return err
	}
	results := &results{Machine: hardware(), Rounds: o.rounds, Seconds: o.seconds}
	for _, scenario := range scenarios(time.Duration(o.seconds) * time.Second) {
		if !only.MatchString(scenario.name) {
			continue
		}
		if err := scenario.run(ctx, world, o.rounds, results); err != nil {
			return errors.Join(fmt.Errorf("scenario %s: %w", scenario.name, err), results.write(o.json))
		}
	}
	return errors.Join(results.print(os.Stdout), results.write(o.json))
}
