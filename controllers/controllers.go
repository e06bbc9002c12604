// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllers lists all controllers.
package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	reachcontroller "github.com/sharedquota/shared-quota-operator/controllers/reach"
	"github.com/sharedquota/shared-quota-operator/controllers/status"
	"github.com/sharedquota/shared-quota-operator/controllers/trigger"
	"github.com/sharedquota/shared-quota-operator/controllers/usage"
	"github.com/sharedquota/shared-quota-operator/internal/certs"
	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/deviceclaims"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/history"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/metrics"
	"github.com/sharedquota/shared-quota-operator/internal/reach"
	"github.com/sharedquota/shared-quota-operator/internal/report"
	"github.com/sharedquota/shared-quota-operator/internal/serving"
	"github.com/sharedquota/shared-quota-operator/internal/trail"
	"github.com/sharedquota/shared-quota-operator/internal/waiting"
)

// Options are what the controllers need to be told.
type Options struct {
	// Serving is how the API server reaches the webhooks.
	Serving *serving.Setup
	// Reach is what the webhook configuration is made of besides that and the quotas.
	Reach reach.Settings
	// Namespace is the operator's own; empty where it has none.
	Namespace string
	// Define returns the definition of a quota.
	Define func(*quotav1.ClusterResourceQuota) definition.Definition
	// DecodeLedger reads a stored ledger; Intact reports whether it is as it was written.
	DecodeLedger func(*quotav1.QuotaLedger) (machine.Snapshot, error)
	Intact       func(*quotav1.QuotaLedger) bool
	// LedgerSize tells how large a stored ledger is, in bytes.
	LedgerSize func(*quotav1.QuotaLedger) int
	// Waiting has the workloads that wait for room, and WakeOwners says whether they are woken.
	Waiting    *waiting.List
	WakeOwners bool
	// History is what quotas have seen. Its own part has the name of this Process, which no other process has.
	History *history.Recorder
	Process string
	// DeviceClasses tell when claims may use something else.
	DeviceClasses *deviceclaims.Classes
	// ReservationTTL is the life of a reservation.
	ReservationTTL time.Duration
	// MaxDoubtful is what one namespace may hold for requests that seem to have failed, in percent
	// of a limit.
	MaxDoubtful int64
	// NamespaceMetrics: what each namespace uses is exported, too.
	NamespaceMetrics bool
	// StatusEvery is the least time between two writes of one quota's status,
	// and of its views.
	StatusEvery time.Duration
}

// reach returns the settings with whom the API server must trust now.
func (o *Options) reach() reach.Settings {
	current := o.Reach
	current.Endpoint = o.Serving.Endpoint
	current.Endpoint.CABundle = o.Serving.Certificates.Bundle()
	return current
}

// controller is what all of them have in common.
type controller interface {
	Name() string
	Register(mgr ctrl.Manager) error
}

// lookWithin is how soon controllers look at a quota whose count or ledger has changed, which may be hundreds
// of times a second. What must be settled at once, the quota's machine settles.
const lookWithin = 50 * time.Millisecond

// parts are what controllers share.
type parts struct {
	mgr        ctrl.Manager
	clock      clock.WithTickerAndDelayedExecution
	evaluators *evaluation.Evaluators
	count      *counting.Count
	group      *driver.Group
	metrics    *metrics.Metrics
	options    *Options
	// ledgers, statuses, views, configuration and wakes make the controllers of those look.
	ledgers, statuses, views, configuration, wakes *trigger.Trigger
	shown                                          projections
	// history is what people are shown of what quotas have seen.
	history status.History
}

// changed wakes the controllers of quotas whose count or ledger has changed.
func (p *parts) changed(quotas []string) {
	p.shown.changed(quotas)
	for _, reconcile := range []*trigger.Trigger{p.ledgers, p.statuses, p.views, p.wakes} {
		reconcile.FireWithin(quotas, lookWithin)
	}
}

// forget drops what this replica shows and remembers of a quota that was deleted.
func (p *parts) forget(quota string, uid types.UID) {
	p.metrics.Forget(quota)
	p.options.History.Forget(quota, uid)
}

// Register makes all controllers and adds them to the manager.
func Register(
	ctx context.Context, mgr ctrl.Manager, clock clock.WithTickerAndDelayedExecution, evaluators *evaluation.Evaluators,
	group *driver.Group, metrics *metrics.Metrics, options Options,
) error {
	p := &parts{
		mgr: mgr, clock: clock, evaluators: evaluators, group: group, metrics: metrics, options: &options,
		ledgers: trigger.New(clock), statuses: trigger.New(clock), views: trigger.New(clock), configuration: trigger.New(clock),
		wakes: trigger.New(clock),
		shown: newProjections(clock, mgr.Elected()),
	}
	options.Serving.Certificates.OnChange(func() { p.configuration.Fire([]string{reach.ConfigurationName}) })
	group.OnTrouble(func(quota string) { p.statuses.Fire([]string{quota}) })
	p.count = newCount(ctx, evaluators, p.changed, group, metrics)
	if err := p.remember(); err != nil {
		return err
	}
	p.follow()
	source, err := eventSource(mgr)
	if err != nil {
		return err
	}
	discovery, err := usage.NewDiscovery(clock, mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	watches := usage.NewWatches(clock, discovery, source, p.count, p.changed)
	options.DeviceClasses.OnChange(func() { watches.Remeasure(usage.DeviceClaims) })
	err = addRunnables(mgr, watches, usage.NewHousekeeping(clock, p.count, metrics, 2*options.ReservationTTL))
	if err := errors.Join(err, registerCertificates(mgr, clock, options.Serving, metrics)); err != nil {
		return err
	}
	objects := usage.NewLookup(source.Metadata, discovery)
	newest := usage.NewNewest(ctx, clock, evaluators, discovery, objects)
	recounts := usage.NewRecounts(ctx, clock, group, newest.Limited)
	proofs, configured, err := p.reach(ctx, recounts)
	if err != nil {
		return err
	}
	wakers, err := p.waiting()
	if err != nil {
		return err
	}
	controllers := append(p.usage(ctx, watches, objects, newest, recounts), configured)
	for _, controller := range slices.Concat(controllers, p.status(watches, proofs), wakers) {
		if err := controller.Register(mgr); err != nil {
			return fmt.Errorf("registering controller %s: %w", controller.Name(), err)
		}
	}
	return nil
}

// usage makes the controllers of what is counted and of ledgers.
func (p *parts) usage(
	ctx context.Context, watches *usage.Watches, objects *usage.Lookup, newest *usage.Newest, recounts *usage.Recounts,
) []controller {
	seen := trail.New(p.options.Intact)
	return []controller{
		usage.NewController(usage.Parts{
			Clock: p.clock, Client: p.mgr.GetClient(), Evaluators: p.evaluators, Define: p.options.Define, Count: p.count, Group: p.group,
			Recovery: usage.NewRecovery(p.clock, p.mgr.GetClient(), p.mgr.GetAPIReader(), p.group, seen, p.options.DecodeLedger,
				newest.Limited, p.metrics, p.options.ReservationTTL),
			Recounts: recounts, Escrows: usage.NewEscrows(ctx, p.clock, p.group, p.count, newest.Limited),
			Joins:   usage.NewJoins(ctx, p.clock, p.count, p.group, watches.Version, newest),
			Watches: watches, Objects: objects, Metrics: p.metrics, Changed: p.ledgers,
			Life: p.options.ReservationTTL, MaxDoubtful: p.options.MaxDoubtful,
		}),
		usage.NewLedgerController(p.mgr.GetClient(), p.group, seen, p.options.DecodeLedger,
			usage.Ends{Deleted: p.forget, Replaced: p.options.History.Forget}, p.changed),
	}
}

// status makes the controllers of what people read.
func (p *parts) status(watches *usage.Watches, proofs *reach.Proofs) []controller {
	recorder := p.mgr.GetEventRecorder(report.RecorderName)
	problems, degraded := problemsOf(watches)
	return []controller{
		status.NewQuotaController(status.QuotaParts{
			Clock: p.clock, Client: p.mgr.GetClient(),
			Ledgers:    status.Ledgers{Live: p.mgr.GetAPIReader(), Intact: p.options.Intact},
			Evaluators: p.evaluators, Define: p.options.Define, Count: p.count, Group: p.group, Waiting: p.options.Waiting,
			History: p.history, Problems: problems, Settings: p.options.reach, Proofs: proofs,
			Changed: p.statuses, Lag: p.shown.status, Recorder: recorder,
			Every: p.options.StatusEvery,
		}),
		status.NewViewController(status.ViewParts{
			Clock: p.clock, Client: p.mgr.GetClient(), Count: p.count, Group: p.group, Waiting: p.options.Waiting,
			WakeOwners: p.options.WakeOwners, History: p.history, Degraded: degraded,
			Changed: p.views, Lag: p.shown.views, Recorder: recorder,
			Every: p.options.StatusEvery,
		}),
	}
}

// reach makes the controller of the webhook configuration, and adds what proves that
// the configuration is loaded.
func (p *parts) reach(ctx context.Context, recounts *usage.Recounts) (*reach.Proofs, controller, error) {
	owners, err := reachcontroller.Owners(ctx, p.mgr.GetAPIReader(), p.options.Namespace)
	if err != nil {
		return nil, nil, err
	}
	proofs := &reach.Proofs{}
	var controller *reachcontroller.Controller
	prober, err := reachcontroller.NewProber(p.mgr, p.clock, proofs, p.metrics, p.statuses.Fire, func() { controller.Exposed() })
	if err != nil {
		return nil, nil, err
	}
	controller = reachcontroller.NewController(p.clock, p.mgr.GetClient(), p.evaluators, reachcontroller.Options{
		Settings: p.options.reach, Owners: owners, Define: p.options.Define, Forget: recounts.Forget,
		SettingsChanged: p.configuration, Proofs: proofs, Observed: func(quotas []string) {
			prober.Wake()
			p.statuses.Fire(quotas)
		},
	})
	return proofs, controller, addRunnables(p.mgr, prober)
}

// eventSource makes the clients of what is counted.
func eventSource(mgr ctrl.Manager) (usage.EventSource, error) {
	objects, err := kubernetes.NewForConfigAndClient(protobuf(mgr.GetConfig()), mgr.GetHTTPClient())
	if err != nil {
		return usage.EventSource{}, fmt.Errorf("making the client of objects: %w", err)
	}
	metadata, err := metadata.NewForConfigAndClient(metadata.ConfigFor(mgr.GetConfig()), mgr.GetHTTPClient())
	if err != nil {
		return usage.EventSource{}, fmt.Errorf("making the client of metadata: %w", err)
	}
	return usage.EventSource{Objects: objects, Metadata: metadata}, nil
}

// newCount makes the count, which the machines settle. It logs and counts what can't be matched with a quota.
func newCount(
	ctx context.Context, evaluators *evaluation.Evaluators, counted func(quotas []string),
	group *driver.Group, metrics *metrics.Metrics,
) *counting.Count {
	count, logger := counting.New(evaluators,
		func(quotas []string) { group.Counted(quotas, false); counted(quotas) },
		func(quotas []string) { group.Counted(quotas, true) }), log.FromContext(ctx)
	group.Follow(usage.NewCounter(count))
	count.OnUnmatched(func(quota string, resource schema.GroupResource, err error) {
		logger.Error(err, "Objects can't be matched with the scopes of a quota. They count in full",
			"quota", quota, "resource", resource.String())
		metrics.Unmatched(quota, resource.String())
	})
	return count
}

// projections tell how far lags what people read.
type projections struct{ status, views *status.Lag }

func newProjections(clock clock.PassiveClock, elected <-chan struct{}) projections {
	return projections{status: status.NewLag(clock, elected), views: status.NewLag(clock, elected)}
}

func (p projections) changed(quotas []string) {
	p.status.Changed(quotas)
	p.views.Changed(quotas)
}

// follow has the figures of every quota read at each scrape.
func (p *parts) follow() {
	p.metrics.Follow(p.mgr.Elected(), status.NewFiguresReader(status.FiguresParts{
		Client: p.mgr.GetClient(), Count: p.count, Group: p.group, Waiting: p.options.Waiting, Clock: p.clock, History: p.history,
		Lags: p.shown.byName(), Size: p.options.LedgerSize, Namespaces: p.options.NamespaceMetrics,
	}).Read)
}

func (p projections) byName() map[metrics.Projection]*status.Lag {
	return map[metrics.Projection]*status.Lag{metrics.Status: p.status, metrics.Views: p.views}
}

// registerCertificates adds the controller of certificates that change.
func registerCertificates(mgr ctrl.Manager, clock clock.PassiveClock, setup *serving.Setup, metrics *metrics.Metrics) error {
	var from certs.Source
	switch {
	case setup.Directory != "":
		from = setup.Directory
	case setup.Secret.Name != "":
		from = certs.NewSecret(clock, mgr.GetClient(), setup.Secret, certs.NewIssuer(setup.Hosts[0], setup.Hosts[1:]...))
	default:
		return nil // the only one lives as long as the process
	}
	controller := certs.NewController(mgr.GetClient(), setup.Certificates, from, metrics)
	if err := controller.Register(mgr); err != nil {
		return fmt.Errorf("registering controller %s: %w", controller.Name(), err)
	}
	return nil
}

func addRunnables(mgr ctrl.Manager, runnables ...manager.Runnable) error {
	for _, runnable := range runnables {
		if err := mgr.Add(runnable); err != nil {
			return fmt.Errorf("adding %T: %w", runnable, err)
		}
	}
	return nil
}

// problemsOf returns what tells why something of a quota isn't counted, and what reports
// whether that is so.
func problemsOf(watches *usage.Watches) (problems func(quota string) []status.Problem, degraded func(quota string) bool) {
	problems = func(quota string) []status.Problem {
		all := watches.Problems(quota)
		known := make([]status.Problem, 0, len(all))
		for _, problem := range all {
			known = append(known, status.Problem{Reason: problem.Reason, Message: problem.Message})
		}
		return known
	}
	return problems, func(quota string) bool { return len(watches.Problems(quota)) > 0 }
}

// protobuf asks for the encoding of built-in types that is cheapest to read.
func protobuf(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config
}
