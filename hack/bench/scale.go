// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

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
	crds       string
	pods       int
	namespaces int
	quotas     int
	custom     int
	tries      int
	wake       wakeOptions
}

func parseScale(args []string) scaleOptions {
	var o scaleOptions
	flags := flag.NewFlagSet("bench scale", flag.ExitOnError)
	o.bind(flags)
	flags.StringVar(&o.crds, "crds", "config/crd/bases", "directory of the operator's CRDs")
	flags.IntVar(&o.pods, "pods", 50000, "pods to measure with; a tenth of them comes first")
	flags.IntVar(&o.namespaces, "namespaces", 500, "namespaces; the first one holds a tenth of the pods")
	flags.IntVar(&o.quotas, "quotas", 50, "quotas that the namespaces are shared out to")
	flags.IntVar(&o.custom, "custom", 0, "custom resources to define, of which one can't be listed; the quotas limit them, each its share")
	flags.IntVar(&o.tries, "tries", 100, "pods that are created and deleted, one by one, in each of two namespaces; at least 4")
	o.wake.bind(flags)
	_ = flags.Parse(args)
	return o
}

// runScale measures how counting grows with the number of objects.
//
// It starts the real control plane on loopback, loads pods into namespaces that
// quotas share, and measures the operator as a process of its own: how long it
// takes until everything is counted, how much memory it needs for each counted
// pod, and how long a single change takes to reach the ledger, in a namespace of
// few pods and in one of many. First of a tenth of the pods, then of all of
// them. Absolute times are this machine's; the growth is what it is for.
//
// The pods are loaded while no operator runs: that they are admitted is the
// matter of runPods.
//
// With -wake it measures something else instead: how soon workloads that were refused for long get their pods once there
// is room.
func runScale(args []string) int {
	return ended(parseScale(args).run(signalled()))
}

func (o scaleOptions) validate() error {
	switch {
	case o.quotas < 1, o.namespaces < 2*o.quotas:
		return fmt.Errorf("%d namespaces for %d quotas: want at least two a quota", o.namespaces, o.quotas)
	case o.pods < o.namespaces:
		return fmt.Errorf("%d pods in %d namespaces: want at least one each", o.pods, o.namespaces)
	case o.tries < rounds:
		return fmt.Errorf("%d tries: want at least %d", o.tries, rounds)
	case o.custom < 0:
		return errors.New("want no custom resource, or some")
	}
	return nil
}

func (o scaleOptions) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	sayf("starting etcd and kube-apiserver")
	return withCluster(ctx, harness.Options{AssetsDir: o.assets, CRDDirs: []string{o.crds}}, func(cluster *harness.Cluster) error {
		if o.wake.on {
			return measureWake(ctx, cluster, o)
		}
		measured, err := measureAll(ctx, cluster, o)
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("the ends of the logs:\n%s\n%w", cluster.LogTails(logLines), err)
		}
		if err != nil {
			return err
		}
		return errors.Join(measured.print(os.Stdout), o.write(measured))
	})
}

// measureAll takes all figures, from no pod at all to all of them.
func measureAll(ctx context.Context, cluster *harness.Cluster, o scaleOptions) (report, error) {
	measured := report{Namespaces: o.namespaces, Quotas: o.quotas}
	w, err := newScaleWorld(cluster, o)
	if err != nil {
		return measured, err
	}
	if err := w.prepare(ctx); err != nil {
		return measured, err
	}
	for _, pods := range []int{0, o.pods / 10, o.pods} {
		if err := w.load(ctx, pods); err != nil {
			return measured, err
		}
		row, err := w.measure(ctx)
		if err != nil {
			return measured, fmt.Errorf("measuring with %d pods: %w", pods, err)
		}
		measured.add(row)
	}
	return measured, nil
}

func sayf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}
