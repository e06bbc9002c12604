// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager puts the operator together from its parts, and runs it.
//
// The function run lists the parts in the order in which they are made. A thing that several parts need is a field of
// operator, and each part is handed exactly the things that it works with.
package manager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsregistry "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/sharedquota/shared-quota-operator/controllers/usage"
	"github.com/sharedquota/shared-quota-operator/internal/apiserver"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledgerstore"
	"github.com/sharedquota/shared-quota-operator/internal/metrics"
	"github.com/sharedquota/shared-quota-operator/internal/namespaces"
	"github.com/sharedquota/shared-quota-operator/internal/serving"
	"github.com/sharedquota/shared-quota-operator/internal/waiting"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// gcPercent lets the heap grow to four times its live size.
const gcPercent = 300

// operator has the things that several parts need.
type operator struct {
	flags flags
	clock clock.WithTickerAndDelayedExecution
	// reached has the settings of the webhook configuration without quotas and
	// certificates.
	reached webhookconfig.Settings
	serving *serving.Setup
	contact *apiserver.Contact
	history *apiserver.History
	manager ctrl.Manager
	// lease is nil without leader election.
	lease      *lease
	clients    clients
	metrics    *metrics.Metrics
	claims     evaluation.ClaimSources
	classes    *usage.Classes
	evaluators *evaluation.Evaluators
	index      *namespaces.Index
	// group has the machines, which charge ledgers.
	group *driver.Group
	// waits has the workloads that wait for room.
	waits *waiting.List
}

// Main runs the operator until a signal ends it, and returns its exit status. The environment variable that
// clockOffset names, if it names one, says by how much the clock is wrong.
func Main(version, clockOffset string) int {
	f, logging := parseFlags()
	if f.version {
		_, _ = fmt.Fprintln(os.Stdout, "shared-quota-operator", version)
		return 0
	}
	logger := zap.New(zap.UseFlagOptions(&logging))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	tuneCollector()
	clock, err := systemClock(clockOffset)
	if err == nil {
		err = run(ctrl.SetupSignalHandler(), clock, f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		return 1
	}
	return 0
}

// tuneCollector lets garbage pile up, unless the environment says otherwise: the
// heap is small and the garbage of admission much. Collected at each doubling, it
// took an eighth of the operator's CPU time under load.
func tuneCollector() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

func run(ctx context.Context, clock clock.WithTickerAndDelayedExecution, f flags) error {
	reached, byDefault, err := settings(f)
	if err != nil {
		return err
	}
	o := &operator{flags: f, clock: clock, reached: reached, history: newHistory(), waits: waiting.NewList()}
	if o.serving, err = serving.New(clock, f.serving); err != nil {
		return err
	}
	ctx = o.serving.Server.Stopping(ctx, clock, f.shutdownDelay)
	if err := o.connect(); err != nil {
		return err
	}
	o.metrics = metrics.New(metricsregistry.Registry)
	o.metrics.Contact(o.contact.Silence)
	o.serving.Server.Observe(o.metrics)
	if o.claims, o.classes, err = usage.Sources(ctx, o.manager); err != nil {
		return err
	}
	o.evaluators = evaluation.New(clock, o.claims, byDefault.Limited()...)
	if o.index, err = o.newIndex(ctx); err != nil {
		return err
	}
	stop, err := o.charge(ctx)
	if err != nil {
		return err
	}
	defer stop()
	err = errors.Join(
		o.addWebhooks(ctx),
		o.serving.Callers.Follow(ctx, o.manager.GetCache(), o.manager.GetAPIReader()),
		o.addControllers(ctx),
		o.addProbes(), addLacking(o.manager))
	if err != nil {
		return err
	}
	return o.manager.Start(ctx)
}

// newIndex makes the Index, which follows quotas and namespaces by watches of its own.
func (o *operator) newIndex(ctx context.Context) (*namespaces.Index, error) {
	from, err := client.NewWithWatch(o.manager.GetConfig(), o.clientOptions())
	if err != nil {
		return nil, fmt.Errorf("making the client that watches quotas and namespaces: %w", err)
	}
	index := namespaces.NewIndex(o.clock, o.manager.GetAPIReader())
	index.Follow(ctx, from)
	return index, nil
}

// charge makes the machines and their store, which reads past the cache, and watches over the contact. All end, by the
// function that is returned, after the manager has: requests that the webhooks still answer are charged.
func (o *operator) charge(ctx context.Context) (stop func(), err error) {
	live, err := client.New(o.manager.GetConfig(), o.clientOptions())
	if err != nil {
		return nil, fmt.Errorf("making the client of ledgers: %w", err)
	}
	charging, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var watching sync.WaitGroup
	watching.Go(func() { monitoring(o.contact, o.history, o.manager.GetAPIReader()).Run(charging) })
	o.group = driver.New(charging, o.clock, proved{ledgerstore.New(live), o.contact, o.history}, observing{o.metrics, o.history},
		driverOptions(o.flags, o.contact.Replica()))
	return func() {
		drain(charging, o.group)
		cancel()
		o.group.Wait()
		watching.Wait()
	}, nil
}

func (o *operator) clientOptions() client.Options {
	return client.Options{
		HTTPClient: o.manager.GetHTTPClient(), Scheme: o.manager.GetScheme(), Mapper: o.manager.GetRESTMapper(),
	}
}
