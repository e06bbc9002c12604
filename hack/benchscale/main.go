// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Command benchscale measures how counting grows with the number of objects.
//
// It starts the real control plane on loopback, loads pods into namespaces that
// quotas share, and measures the operator as a process of its own: how long it
// takes until everything is counted, how much memory it needs for each counted
// pod, and how long a single change takes to reach the ledger, in a namespace of
// few pods and in one of many. First of a tenth of the pods, then of all of
// them. Absolute times are this machine's; the growth is what it is for.
//
// The pods are loaded while no operator runs: that they are admitted is the
// matter of hack/bench.
//
// With -wake it measures something else instead: how soon workloads that were refused for long get their pods once there
// is room.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

const (
	exitFailed      = 1
	exitInterrupted = 130
	// logLines is how much of each log a failure shows.
	logLines = 15
)

type options struct {
	manager    string
	assets     string
	crds       string
	pods       int
	namespaces int
	quotas     int
	tries      int
	custom     int
	settle     time.Duration
	json       string
	wake       wakeOptions
}

func main() {
	var o options
	flag.StringVar(&o.manager, "manager", "bin/manager", "the operator's binary")
	flag.StringVar(&o.assets, "assets", cmp.Or(os.Getenv("KUBEBUILDER_ASSETS"), "bin/k8s"),
		"directory of etcd, kube-apiserver and kube-controller-manager")
	flag.StringVar(&o.crds, "crds", "config/crd/bases", "directory of the operator's CRDs")
	flag.IntVar(&o.pods, "pods", 50000, "pods to measure with; a tenth of them comes first")
	flag.IntVar(&o.namespaces, "namespaces", 500, "namespaces; the first one holds a tenth of the pods")
	flag.IntVar(&o.quotas, "quotas", 50, "quotas that the namespaces are shared out to")
	flag.IntVar(&o.custom, "custom", 0, "custom resources to define, of which one can't be listed; the quotas limit them, each its share")
	flag.IntVar(&o.tries, "tries", 100, "pods that are created and deleted, one by one, in each of two namespaces")
	flag.DurationVar(&o.settle, "settle", 20*time.Second, "pause before memory is measured")
	flag.StringVar(&o.json, "json", os.Getenv("BENCH_JSON"), "file to write the figures to as JSON")
	o.wake.bind()
	flag.Parse()
	ctrl.SetLogger(logr.Discard()) // What the control plane's helpers log is of no use here.
	klog.SetLogger(logr.Discard())

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // A second signal ends the program at once.
	os.Exit(exitCode(ctx, run(ctx, o)))
}

// errCleanUp says that not everything ended as it should when it was stopped.
var errCleanUp = errors.New("stopping")

// exitCode reports err, unless it only says that somebody interrupted.
func exitCode(ctx context.Context, err error) int {
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil && errors.Is(err, context.Canceled) && !errors.Is(err, errCleanUp):
		fmt.Fprintln(os.Stderr, "\nbenchscale: interrupted; everything is stopped")
		return exitInterrupted
	default:
		fmt.Fprintf(os.Stderr, "\nbenchscale: %v\n", err)
		return exitFailed
	}
}

func (o options) validate() error {
	switch {
	case o.quotas < 1, o.namespaces < 2*o.quotas:
		return fmt.Errorf("%d namespaces for %d quotas: want at least two a quota", o.namespaces, o.quotas)
	case o.pods < o.namespaces:
		return fmt.Errorf("%d pods in %d namespaces: want at least one each", o.pods, o.namespaces)
	case o.custom < 0:
		return errors.New("want no custom resource, or some")
	case o.tries < 1:
		return errors.New("want at least one try")
	}
	return nil
}

func run(ctx context.Context, o options) (err error) {
	if err := o.validate(); err != nil {
		return err
	}
	sayf("starting etcd and kube-apiserver")
	cluster, err := harness.Start(ctx, harness.Options{AssetsDir: o.assets, CRDDirs: []string{o.crds}})
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := cluster.Stop(); stopErr != nil {
			err = errors.Join(err, fmt.Errorf("%w: %w", errCleanUp, stopErr))
		}
	}()
	if o.wake.on {
		return measureWake(ctx, cluster, o)
	}
	measured, err := measureAll(ctx, cluster, o)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("the ends of the logs:\n%s\nbenchscale: %w", cluster.LogTails(logLines), err)
	}
	if err != nil {
		return err
	}
	return errors.Join(measured.print(os.Stdout), measured.write(o.json))
}

// measureAll takes all figures, from no pod at all to all of them.
func measureAll(ctx context.Context, cluster *harness.Cluster, o options) (report, error) {
	measured := report{Namespaces: o.namespaces, Quotas: o.quotas}
	w, err := newWorld(cluster, o)
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
