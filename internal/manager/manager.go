// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager puts the operator together from its parts, and runs it.
//
// Its list is operator.parts. Each part is a method that hands one thing all that it needs. A thing that several parts
// need is a field of operator.
package manager

import (
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/sharedquota/shared-quota-operator/controllers/status"
	"github.com/sharedquota/shared-quota-operator/controllers/usage"
	"github.com/sharedquota/shared-quota-operator/internal/apiserver"
	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/metrics"
	"github.com/sharedquota/shared-quota-operator/internal/namespaces"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
	"github.com/sharedquota/shared-quota-operator/internal/serving"
	"github.com/sharedquota/shared-quota-operator/internal/waiting"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
	"github.com/sharedquota/shared-quota-operator/webhooks/objects"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// People are the parts for people that an operator may do without.
type People struct {
	// Preflight warns anyone who applies a workload that won't fit.
	Preflight bool
	// Waiting has refused workloads tried again when there is room.
	Waiting bool
}

// operator has the things that several parts need.
type operator struct {
	flags  flags
	people People
	clock  clock.WithTickerAndDelayedExecution
	// reached has the settings of the webhook configuration without quotas and
	// certificates.
	reached webhookconfig.Settings
	limited evaluation.LimitedConfiguration
	serving *serving.Setup
	contact *apiserver.Contact
	history *apiserver.History
	manager ctrl.Manager
	// lease is nil without leader election.
	lease   *lease
	clients clients
	metrics *metrics.Metrics
	// told tells people of outcomes.
	told       outcomes.Observer
	claims     evaluation.ClaimSources
	classes    *usage.Classes
	evaluators *evaluation.Evaluators
	index      *namespaces.Index
	// replacements looks up which pods replace others.
	replacements *objects.Replacements
	// group has the machines, which charge ledgers, and stop ends them.
	group    *driver.Group
	stop     func()
	count    *counting.Count
	counting *usage.Controller
	proofs   webhookconfig.Proofs
	// waits has the workloads that wait for room.
	waits *waiting.List
	// ledgers, statuses, views, configuration and wakes make the controllers of those look.
	ledgers, statuses, views, configuration, wakes *trigger
	// statusLag and viewsLag are how far the status and the views lag.
	statusLag, viewsLag *status.Lag
}

// parts lists the parts in the order in which they are made.
func (o *operator) parts() []func(context.Context) error {
	parts := []func(context.Context) error{
		o.connect, o.tell,
		// Enforcement: costs, namespaces, ledgers and the count, then webhooks, controllers and probes.
		o.evaluate, o.cover, o.charge, o.countObjects,
		o.callers, o.objects, o.quotas, o.probe,
		o.usage, o.certificates, o.webhookConfiguration,
		o.probes, o.lacking,
		// People.
		o.status,
	}
	if o.people.Preflight {
		parts = append(parts, o.workloads)
	}
	if o.people.Waiting {
		parts = append(parts, o.waiting)
	}
	return parts
}

// Main runs the operator until a signal ends it, and returns its exit status. The environment variable that
// clockOffset names, if it names one, says by how much the clock is wrong.
func Main(version, clockOffset string, people People) int {
	f, logging := parseFlags()
	if f.version {
		_, _ = fmt.Fprintln(os.Stdout, "shared-quota-operator", version)
		return 0
	}
	logger := zap.New(zap.UseFlagOptions(&logging))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	clock, err := systemClock(clockOffset)
	if err = errors.Join(err, tuneCollector()); err == nil {
		err = run(ctrl.SetupSignalHandler(), clock, f, people)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, clock clock.WithTickerAndDelayedExecution, f flags, people People) error {
	o := &operator{
		flags: f, people: people, clock: clock, history: newHistory(clock), stop: func() {}, waits: waiting.NewList(),
		ledgers: newTrigger(clock), statuses: newTrigger(clock), views: newTrigger(clock), configuration: newTrigger(clock),
		wakes: newTrigger(clock),
	}
	var err error
	if o.reached, o.limited, err = settings(f); err != nil {
		return err
	}
	if o.serving, err = serving.New(clock, f.serving); err != nil {
		return err
	}
	ctx = o.serving.Server.Stopping(ctx, clock, f.shutdownDelay)
	defer func() { o.stop() }()
	for _, add := range o.parts() {
		if err := add(ctx); err != nil {
			return err
		}
	}
	return o.manager.Start(ctx)
}
