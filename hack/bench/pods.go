// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

type podsOptions struct {
	measuring
	// compare is another build's binary, to measure beside the manager's.
	compare string
	rounds  int
	seconds int
	// short is for a quick look: its figures aren't for the page.
	short bool
	only  string
	// variants is a regular expression of those that take turns.
	variants string
	// config is the directory of what installs the operator.
	config string
	// allowAddress makes this program the webhook that allows everything.
	allowAddress string
	allowHealth  string
	certDir      string
}

func parsePods(args []string) podsOptions {
	var o podsOptions
	flags := flag.NewFlagSet("bench pods", flag.ExitOnError)
	o.bind(flags)
	flags.StringVar(&o.compare, "compare", "", "the binary of another build of the operator, to take turns with this one's")
	flags.IntVar(&o.rounds, "rounds", 3, "how many turns each variant takes")
	flags.IntVar(&o.seconds, "seconds", 4, "how long each turn measures")
	flags.BoolVar(&o.short, "short", false, "one round of 2 s a turn, whose figures aren't stored for the page")
	flags.StringVar(&o.only, "only", "", "regular expression of the scenarios to run; empty for all")
	flags.StringVar(&o.variants, "variants", "", "regular expression of the variants that take turns; empty for all")
	flags.StringVar(&o.config, "config", "config", "directory of what installs the operator")
	flags.StringVar(&o.allowAddress, "allow-address", "", "internal: serve the webhook that allows everything at this address")
	flags.StringVar(&o.allowHealth, "allow-health", "", "internal: the address at which it is probed")
	flags.StringVar(&o.certDir, "cert-dir", "", "internal: its certificate")
	_ = flags.Parse(args)
	if o.short {
		o.rounds, o.seconds = 1, 2
	}
	return o
}

// runPods measures what a shared quota costs, against what limits nothing, the cheapest webhook
// there can be, and Kubernetes' own ResourceQuota.
//
// It starts the real control plane and each variant as processes of their own, in a network
// namespace in which the API server reaches a variant's replicas through a Service, as in a
// cluster. The variants take turns, so that what the machine does besides falls on all of
// them. Absolute figures are this machine's; the ratios are what it is for.
func runPods(args []string) int {
	o := parsePods(args)
	if o.allowAddress != "" {
		return ended(serveAllow(signalled(), o.allowAddress, o.allowHealth, o.certDir))
	}
	return harness.InNamespace(func() int { return ended(o.run(signalled())) })
}

func (o *podsOptions) run(ctx context.Context) error {
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
	fmt.Println("Starting etcd and kube-apiserver in a network namespace ...")
	return withCluster(ctx, harness.Options{
		AssetsDir: o.assets, CRDDirs: []string{}, Production: true,
		APIServerFlags: map[string]string{"max-mutating-requests-inflight": "2000"},
	}, func(cluster *harness.Cluster) error {
		world, err := newPodsWorld(cluster, manager)
		if err != nil {
			return err
		}
		defer world.close()
		world.variants, world.compare = variants, o.compare
		if world.profiler, err = newProfiler(o.profiles, cluster); err != nil {
			return err
		}
		if err := world.install(ctx, o.config); err != nil {
			return err
		}
		return o.measure(ctx, world, only)
	})
}

func (o *podsOptions) measure(ctx context.Context, world *podsWorld, only *regexp.Regexp) error {
	results := &results{Machine: hardware(), Date: time.Now().Format(time.DateOnly), Rounds: o.rounds, Seconds: o.seconds}
	duration := time.Duration(o.seconds) * time.Second
	failures := world.age(ctx, duration)
	for _, scenario := range scenarios(duration) {
		if !only.MatchString(scenario.name) || ctx.Err() != nil {
			continue
		}
		if err := scenario.run(ctx, world, o.rounds, results); err != nil {
			failures = errors.Join(failures, fmt.Errorf("scenario %s: %w", scenario.name, err))
		}
	}
	results.Goals = results.goals()
	return errors.Join(results.print(os.Stdout), o.store(results, failures == nil && ctx.Err() == nil), failures, ctx.Err())
}

// store writes the figures where they are wanted. Only those of all scenarios and variants, of one build, are for the page.
func (o *podsOptions) store(results *results, complete bool) error {
	if o.json == "" && complete && o.only == "" && o.variants == "" && o.compare == "" && o.profiles == "" && !o.short {
		return o.keep("pods.json", results)
	}
	return o.write(results)
}
