// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

const (
	// settle is a pause before memory is measured.
	settle = 20 * time.Second
	// logLines is how much of each log a failure shows.
	logLines = 15
)

type scaleOptions struct {
	measuring
	config string
	only   string
	divide int
	tries  int
	// memoryLimit is the operator's GOMEMLIMIT.
	memoryLimit string
	wake        wakeOptions
}

func parseScale(args []string) scaleOptions {
	var o scaleOptions
	flags := flag.NewFlagSet("bench scale", flag.ExitOnError)
	o.bind(flags)
	flags.StringVar(&o.config, "config", "config", "directory of what installs the operator")
	flags.StringVar(&o.only, "only", "", "regular expression of the scenarios to run; empty for all: "+strings.Join(scenarioNames(), ", "))
	flags.IntVar(&o.divide, "divide", 1, "divide the numbers of namespaces, quotas, pods and custom resources by this, for a quick look")
	flags.IntVar(&o.tries, "tries", 20, "pods that are created and deleted, one by one, in each of two namespaces; at least 4")
	flags.StringVar(&o.memoryLimit, "memory-limit", "1GiB", "GOMEMLIMIT of the operator; the run fails if more is ever resident")
	o.wake.bind(flags)
	_ = flags.Parse(args)
	return o
}

// runScale measures how the operator does with many objects, namespaces and quotas.
//
// Each plan has a control plane of its own, in a network namespace in which the API server reaches
// the operator through its Service, as in a cluster. The objects are loaded while no operator runs;
// runPods measures their admission. Each plan's parts then measure the operator as a process of its own: its start, a single
// change, rest, and the death of a leader.
// Native ResourceQuota is measured over the same objects. Absolute times are this machine's.
//
// With -wake it measures something else instead, on loopback: how soon workloads that were refused for long get their pods
// once there is room.
func runScale(args []string) int {
	o := parseScale(args)
	if o.wake.on {
		return ended(o.measureWake(signalled()))
	}
	return harness.InNamespace(func() int { return ended(o.run(signalled())) })
}

// plan is a world, and what is measured in it.
type plan struct {
	size  size
	title func(size) string
	parts []part
}

// part is one measurement. -only selects parts by the names of their scenarios.
type part struct {
	scenario string
	measure  func(*scaleWorld, context.Context) error
}

func plans() []plan {
	return []plan{
		{
			size{namespaces: 500, quotas: 50, pods: 50000, crowded: true},
			func(s size) string { return thousands(s.pods) + " pods" },
			[]part{{"pods", (*scaleWorld).measurePods}},
		},
		{
			size{namespaces: 500, quotas: 50, pods: 5000, custom: 500, crowded: true},
			func(s size) string { return thousands(s.custom) + " custom resources" },
			[]part{{"custom", (*scaleWorld).measureStart}},
		},
		{
			size{namespaces: 5000, quotas: 1, pods: 50000, crowded: true},
			func(s size) string { return thousands(s.namespaces) + " namespaces" },
			[]part{{"namespaces", (*scaleWorld).measureNamespaces}, {"namespaces", (*scaleWorld).measureNative}},
		},
		{
			size{namespaces: 20000, quotas: 1000, pods: 20000}, func(s size) string { return thousands(s.quotas) + " quotas" },
			[]part{
				{"quotas", (*scaleWorld).measureQuotas},
				{"steady", (*scaleWorld).measureSteady},
				{"leader", (*scaleWorld).measureLeader},
				// The last: the operator follows native quotas, too.
				{"quotas", (*scaleWorld).measureNative},
			},
		},
		{
			size{namespaces: 500, quotas: 50, pods: 500},
			func(s size) string { return thousands(s.namespaces) + " namespaces come and go" },
			[]part{{"churn", (*scaleWorld).measureChurn}},
		},
	}
}

func scenarioNames() []string {
	var names []string
	for _, plan := range plans() {
		for _, part := range plan.parts {
			if !slices.Contains(names, part.scenario) {
				names = append(names, part.scenario)
			}
		}
	}
	return names
}

// only leaves the parts of some scenarios.
func (p plan) only(wanted *regexp.Regexp) plan {
	var parts []part
	for _, part := range p.parts {
		if wanted.MatchString(part.scenario) {
			parts = append(parts, part)
		}
	}
	p.parts = parts
	return p
}

func (o *scaleOptions) validate() error {
	switch {
	case o.divide < 1:
		return fmt.Errorf("-divide %d: want at least 1", o.divide)
	case o.tries < rounds:
		return fmt.Errorf("-tries %d: want at least %d", o.tries, rounds)
	}
	_, err := o.mostMemory()
	return err
}

// mostMemory is the memory limit in bytes.
func (o *scaleOptions) mostMemory() (float64, error) {
	most, err := resource.ParseQuantity(strings.TrimSuffix(o.memoryLimit, "B"))
	if err != nil || most.Sign() <= 0 {
		return 0, fmt.Errorf("-memory-limit %q: want a size, such as 1GiB", o.memoryLimit)
	}
	return most.AsApproximateFloat64(), nil
}

// operatorEnv is what the operator's environment has besides.
func (o *scaleOptions) operatorEnv() []string { return []string{"GOMEMLIMIT=" + o.memoryLimit} }

func (o *scaleOptions) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	only, err := regexp.Compile("(?i)^(" + o.only + ")")
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	measured, failures := &report{}, error(nil)
	for _, plan := range plans() {
		plan = plan.only(only)
		if len(plan.parts) == 0 || ctx.Err() != nil {
			continue
		}
		if err := o.measure(ctx, plan, measured); err != nil && ctx.Err() == nil {
			failures = errors.Join(failures, fmt.Errorf("%s: %w", plan.title(plan.size), err))
		}
	}
	figures := measured.section()
	return errors.Join(figures.print(os.Stdout), o.store(figures, failures == nil && ctx.Err() == nil), failures, ctx.Err())
}

// store writes the figures where they are wanted. Only those of all scenarios in their sizes are for the page.
func (o *scaleOptions) store(figures section, complete bool) error {
	if o.json == "" && complete && o.only == "" && o.divide == 1 && o.profiles == "" {
		return o.keep("scale.json", figures)
	}
	return o.write(figures)
}

// measure carries out a plan.
func (o *scaleOptions) measure(ctx context.Context, plan plan, measured *report) error {
	s := plan.size.divided(o.divide)
	sayf("%s: starting etcd and kube-apiserver", plan.title(s))
	options := harness.Options{AssetsDir: o.assets, CRDDirs: []string{}, Production: true}
	return withCluster(ctx, options, func(cluster *harness.Cluster) error {
		w, err := newScaleWorld(ctx, cluster, *o, s)
		if err != nil {
			return err
		}
		defer w.operator.Close()
		w.report, w.title = measured, plan.title(s)
		for _, part := range plan.parts {
			err := part.measure(w, ctx)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				return fmt.Errorf("the ends of the logs:\n%s\nscenario %s: %w", cluster.LogTails(logLines), part.scenario, err)
			}
		}
		return errors.Join(w.stop(ctx), w.excess)
	})
}

func sayf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}
