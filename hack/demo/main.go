// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Command demo tells the story of a shared quota on a real control plane: it
// starts one on loopback, runs the operator against it, types kubectl commands
// as people would, and checks that each came out as told.
//
// It exits with a code other than 0 as soon as one did not. However it ends, it
// leaves no process and no file of its own behind.
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
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

const (
	exitFailed      = 1
	exitInterrupted = 130
	// logLines is how much of each log a failed step shows.
	logLines = 15
)

type options struct {
	manager string
	plugin  string
	assets  string
	config  string
	keep    bool
}

func main() {
	var o options
	flag.StringVar(&o.manager, "manager", "bin/manager", "the operator's binary")
	flag.StringVar(&o.plugin, "plugin", "bin/kubectl-crq", "the plugin of kubectl")
	flag.StringVar(&o.assets, "assets", cmp.Or(os.Getenv("KUBEBUILDER_ASSETS"), "bin/k8s"),
		"directory of etcd, kube-apiserver, kube-controller-manager and kubectl")
	flag.StringVar(&o.config, "config", "config", "directory of the operator's CRDs, roles and policies")
	flag.BoolVar(&o.keep, "keep", false, "leave everything running until Ctrl-C")
	flag.Parse()
	log.SetLogger(logr.Discard()) // What the control plane's helpers log is of no use here.

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
		fmt.Fprintln(os.Stderr, "\ndemo: interrupted; everything is stopped")
		return exitInterrupted
	default:
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
		return exitFailed
	}
}

func run(ctx context.Context, o options) (err error) {
	out := newScreen(os.Stdout)
	out.say("Starting etcd, kube-apiserver and kube-controller-manager on loopback, and the operator as a process of its own ...")
	plugin, err := filepath.Abs(o.plugin)
	if err != nil {
		return err
	}
	cluster, err := harness.Start(ctx, harness.Options{
		AssetsDir: o.assets, PluginDir: filepath.Dir(plugin), CRDDirs: []string{filepath.Join(o.config, "crd", "bases")},
	})
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := cluster.Stop(); stopErr != nil {
			err = errors.Join(err, fmt.Errorf("%w: %w", errCleanUp, stopErr))
		}
	}()
	controllerManager, err := cluster.StartControllerManager(ctx)
	if err != nil {
		return err
	}
	operator := &operator{cluster: cluster, options: harness.OperatorOptions{Binary: o.manager}}
	if err := operator.Start(ctx); err != nil {
		return err
	}

	p, err := newPlayer(cluster, operator, out)
	if err != nil {
		return err
	}
	if err := p.install(ctx, o.config); err != nil {
		return err
	}
	played, err := p.play(ctx, story())
	switch {
	case err != nil && ctx.Err() == nil:
		return fmt.Errorf("the ends of the logs:\n%s\ndemo: %w", cluster.LogTails(logLines), err) // What matters most comes last.
	case err != nil:
		return err
	}
	out.success(fmt.Sprintf("All %d steps came out as told.", played))
	if o.keep {
		sayHowToLookAround(out, cluster.Kubeconfig(), filepath.Dir(cluster.KubectlPath())+":"+filepath.Dir(plugin), p.dir)
		return keep(ctx, out, controllerManager, operator.running.Process)
	}
	out.say("Stopping everything.")
	return nil
}

// operator is the process that enforces the story's quota.
type operator struct {
	cluster *harness.Cluster
	options harness.OperatorOptions
	running *harness.Operator
}

// Start starts it, or another one in the place of the one that was stopped.
func (o *operator) Start(ctx context.Context) (err error) {
	o.running, err = o.cluster.StartOperator(ctx, o.options)
	if err == nil {
		o.options.WebhookPort = o.running.WebhookPort
	}
	return err
}

// sayHowToLookAround tells what to type in a shell to go on where the story ended.
func sayHowToLookAround(out *screen, kubeconfig, path, dir string) {
	out.say("Everything stays up until Ctrl-C. In another terminal:")
	out.output("\nexport KUBECONFIG=" + kubeconfig + "\nexport PATH=" + path + ":$PATH\ncd " + dir)
}

// keep returns when somebody interrupts, or with an error when a process that
// should stay up ends.
func keep(ctx context.Context, out *screen, controllerManager, operator *harness.Process) error {
	select {
	case <-ctx.Done():
		out.say("Stopping everything.")
		return nil
	case <-controllerManager.Done():
		return controllerManager.Stop()
	case <-operator.Done():
		return operator.Stop()
	}
}
