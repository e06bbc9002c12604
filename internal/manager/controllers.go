// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/sharedquota/shared-quota-operator/controllers/status"
	"github.com/sharedquota/shared-quota-operator/controllers/usage"
	"github.com/sharedquota/shared-quota-operator/controllers/wake"
	configurationcontroller "github.com/sharedquota/shared-quota-operator/controllers/webhookconfig"
	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/ledgerstore"
	"github.com/sharedquota/shared-quota-operator/internal/metrics"
	"github.com/sharedquota/shared-quota-operator/internal/report"
	"github.com/sharedquota/shared-quota-operator/internal/serving"
	"github.com/sharedquota/shared-quota-operator/internal/waiting"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// lookWithin is how soon controllers look at a quota whose count or ledger has changed, which may be hundreds of times
// a second. Urgent changes are settled by the quota's machine.
const lookWithin = 50 * time.Millisecond

// wiring has the parts that controllers share besides.
type wiring struct {
	*operator

	count   *counting.Count
	watches *usage.Watches
	joins   *usage.Joins
	proofs  *webhookconfig.Proofs
	// ledgers, statuses, views, configuration and wakes make the controllers of those look.
	ledgers, statuses, views, configuration, wakes *trigger
	// How far the status and the views lag.
	statusLag, viewsLag *status.Lag
}

// counted takes it that the count of quotas has changed, which their machines settle.
func (w *wiring) counted(quotas []string) {
	w.group.Counted(quotas, false)
	for _, quota := range quotas {
		w.joins.Follow(quota)
	}
	w.tell(quotas)
}

// changed wakes the controllers of quotas whose ledger has changed, or what they are counted from.
func (w *wiring) changed(quotas []string) {
	lookSoon(quotas, w.ledgers)
	w.tell(quotas)
}

// tell wakes the controllers of what people read.
func (w *wiring) tell(quotas []string) {
	w.statusLag.Changed(quotas)
	w.viewsLag.Changed(quotas)
	lookSoon(quotas, w.statuses, w.views, w.wakes)
}

func lookSoon(quotas []string, triggers ...*trigger) {
	for _, reconcile := range triggers {
		reconcile.fireWithin(quotas, lookWithin)
	}
}

// addControllers makes all controllers and adds them to the manager.
func (o *operator) addControllers(ctx context.Context) error {
	mgr, clock := o.manager, o.clock
	w := &wiring{
		operator: o, proofs: &webhookconfig.Proofs{},
		ledgers: newTrigger(clock), statuses: newTrigger(clock), views: newTrigger(clock), configuration: newTrigger(clock),
		wakes:     newTrigger(clock),
		statusLag: status.NewLag(clock, mgr.Elected()), viewsLag: status.NewLag(clock, mgr.Elected()),
	}
	w.follow(ctx)
	served, err := usage.NewDiscovery(clock, mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	source := usage.EventSource{Objects: w.clients.typed, Metadata: w.clients.metadata}
	w.watches = usage.NewWatches(clock, served, source, w.count, w.changed)
	w.classes.OnChange(func() { w.watches.Remeasure(usage.DeviceClaims) })
	objects := usage.NewLookup(w.clients.metadata, served)
	newest := usage.NewNewest(w.evaluators, served, objects)
	w.joins = usage.NewJoins(ctx, clock, w.count, w.group, w.watches.Version, newest)
	recounts := usage.NewRecounts(ctx, clock, w.group, newest.Limited)
	return errors.Join(
		add(mgr, w.watches, usage.Housekeeping(clock, w.count, w.metrics, 2*w.flags.reservations.life)),
		w.certificates(),
		w.webhookConfiguration(recounts),
		w.usage(ctx, objects, newest, recounts),
		w.status(),
		w.waiting(),
	)
}

// follow makes the count, which the machines settle, and makes each scrape read the figures of every quota. Objects
// that can't be matched with a quota are logged and counted.
func (w *wiring) follow(ctx context.Context) {
	w.serving.Certificates.OnChange(func() { w.configuration.fire([]string{webhookconfig.ConfigurationName}) })
	w.group.OnTrouble(func(quota string) { w.statuses.fire([]string{quota}) })
	w.count = counting.New(w.evaluators, w.counted,
		func(quotas []string) { w.group.Counted(quotas, true) })
	w.group.Follow(usage.NewCounter(w.count))
	w.count.OnUnmatched(func(quota string, resource schema.GroupResource, err error) {
		log.FromContext(ctx).Error(err, "Objects can't be matched with the scopes of a quota. They count in full",
			"quota", quota, "resource", resource.String())
		w.metrics.Unmatched(quota, resource.String())
	})
	w.metrics.Follow(w.manager.Elected(), status.NewFiguresReader(status.FiguresParts{
		Client: w.manager.GetClient(), Count: w.count, Group: w.group, Waiting: w.waits,
		Lags: map[metrics.Projection]*status.Lag{metrics.Status: w.statusLag, metrics.Views: w.viewsLag},
		Size: ledgerstore.Size, Namespaces: w.flags.metrics.namespaces,
	}).Read)
}

// usage adds the controllers of the count and of ledgers.
func (w *wiring) usage(ctx context.Context, objects *usage.Lookup, newest *usage.Newest, recounts *usage.Recounts) error {
	return register(w.manager,
		usage.NewController(usage.Parts{
			Clock: w.clock, Client: w.manager.GetClient(), Evaluators: w.evaluators, Define: w.index.Define, Count: w.count, Group: w.group,
			Recovery: usage.NewRecovery(usage.RecoveryParts{
				Clock: w.clock, Client: w.manager.GetClient(), Live: w.manager.GetAPIReader(), Group: w.group, Decode: ledgerstore.Snapshot,
				Newest: newest.Limited, Now: newest.Version, Metrics: w.metrics, Life: w.flags.reservations.life,
			}),
			Recounts: recounts, Escrows: usage.NewEscrows(ctx, w.clock, w.group, w.count, newest.Limited),
			Joins: w.joins, Watches: w.watches, Objects: objects, Metrics: w.metrics, Changed: w.ledgers.source(),
			Life: w.flags.reservations.life, MaxDoubtful: w.flags.reservations.maxDoubtful,
		}),
		usage.NewLedgerController(w.manager.GetClient(), w.group, ledgerstore.Snapshot, w.metrics.Forget, w.changed))
}

// status adds the controllers of the status and the views, which people read.
func (w *wiring) status() error {
	recorder := w.manager.GetEventRecorder(report.RecorderName)
	offer := usage.NewOffer(w.clock, discovery.ToDiscoveryInterfaceWithContext(w.clients.typed.Discovery()))
	problems := func(quota string) []status.Problem {
		all := w.watches.Problems(quota)
		known := make([]status.Problem, 0, len(all))
		for _, problem := range all {
			known = append(known, status.Problem(problem))
		}
		return known
	}
	return register(w.manager,
		status.NewQuotaController(status.QuotaParts{
			Clock: w.clock, Client: w.manager.GetClient(),
			Ledgers:    status.Ledgers{Live: w.manager.GetAPIReader(), Intact: ledgerstore.Intact},
			Evaluators: w.evaluators, Define: w.index.Define, Count: w.count, Group: w.group, Waiting: w.waits,
			Problems: problems, Served: offer.Namespaced, Settings: w.settings, Proofs: w.proofs,
			Changed: w.statuses.source(), Lag: w.statusLag, Recorder: recorder,
			Life: w.flags.reservations.life, Every: w.flags.statusEvery,
		}),
		status.NewViewController(status.ViewParts{
			Clock: w.clock, Client: w.manager.GetClient(), Count: w.count, Group: w.group, Waiting: w.waits,
			WakeOwners: w.flags.wakeOwners, Degraded: func(quota string) bool { return len(problems(quota)) > 0 },
			Protected: w.reached.Protected, Changed: w.views.source(), Lag: w.viewsLag, Recorder: recorder,
			Every: w.flags.statusEvery,
		}))
}

// settings returns the settings of the webhook configuration, with the authorities that the API server must trust now.
func (w *wiring) settings() webhookconfig.Settings {
	current := w.reached
	current.Endpoint = w.serving.Endpoint
	current.Endpoint.CABundle = w.serving.Certificates.Bundle()
	return current
}

// webhookConfiguration adds the controller of the webhook configuration, and the prober that shows that it is loaded.
func (w *wiring) webhookConfiguration(recounts *usage.Recounts) error {
	var configured *configurationcontroller.Controller
	prober, err := configurationcontroller.NewProber(w.manager, w.clock, w.proofs, w.metrics, w.statuses.fire,
		func() { configured.Exposed() })
	if err != nil {
		return err
	}
	configured = configurationcontroller.NewController(w.clock, w.manager.GetClient(), w.evaluators, configurationcontroller.Options{
		Settings: w.settings,
		Owners:   configurationcontroller.Owners(w.manager.GetAPIReader(), w.flags.namespace),
		Leads:    w.lease.leads(w.manager.GetAPIReader()),
		Define:   w.index.Define, Forget: recounts.Forget,
		Changed: w.configuration.source(), Look: func(within time.Duration) {
			w.configuration.fireWithin([]string{webhookconfig.ConfigurationName}, within)
		},
		Proofs: w.proofs, Observed: func(quotas []string) {
			prober.Wake()
			w.statuses.fire(quotas)
		},
	})
	return errors.Join(add(w.manager, prober), register(w.manager, configured))
}

// waiting has the replicas tell each other which workloads wait for room, and adds the controller that wakes them.
func (w *wiring) waiting() error {
	w.waits.OnChange(func(change waiting.Change) {
		lookSoon(change.Quotas, w.wakes)
		if change.Shown {
			lookSoon(change.Quotas, w.statuses, w.views)
		}
	})
	told := wake.ExchangeParts{Clock: w.clock, List: w.waits, Process: string(uuid.NewUUID()), Elected: w.manager.Elected()}
	if w.flags.namespace != "" {
		told.ConfigMaps = w.clients.typed.CoreV1().ConfigMaps(w.flags.namespace)
	}
	workloads := wake.NewWorkloads(w.clients.untyped, w.clients.metadata)
	err := add(w.manager, wake.NewExchange(told), wake.NewReviewer(w.clock, w.waits, workloads))
	if err != nil || !w.flags.wakeOwners {
		return err
	}
	return register(w.manager, wake.NewWaker(wake.WakerParts{
		Clock: w.clock, Client: w.manager.GetClient(), Count: w.count, Group: w.group, List: w.waits, Workloads: workloads,
		Metrics: w.metrics, Changed: w.wakes.source(),
	}))
}

// certificates adds the controller of certificates that change.
func (w *wiring) certificates() error {
	var from serving.Source
	switch {
	case w.serving.Directory != "":
		from = w.serving.Directory
	case w.serving.Secret.Name != "":
		issuer := serving.NewIssuer(w.serving.Hosts[0], w.serving.Hosts[1:]...)
		from = serving.NewSecret(w.clock, w.manager.GetClient(), w.serving.Secret, issuer)
	default:
		return nil // the only one lives as long as the process
	}
	return register(w.manager, serving.NewController(w.manager.GetClient(), w.serving.Certificates, from, w.metrics))
}

// controller has the methods that all controllers have in common.
type controller interface {
	Name() string
	Register(mgr ctrl.Manager) error
}

func register(mgr ctrl.Manager, controllers ...controller) error {
	for _, controller := range controllers {
		if err := controller.Register(mgr); err != nil {
			return fmt.Errorf("registering controller %s: %w", controller.Name(), err)
		}
	}
	return nil
}

func add(mgr ctrl.Manager, runnables ...manager.Runnable) error {
	for _, runnable := range runnables {
		if err := mgr.Add(runnable); err != nil {
			return fmt.Errorf("adding %T: %w", runnable, err)
		}
	}
	return nil
}
