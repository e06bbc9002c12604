// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/discovery"
	metricsregistry "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/sharedquota/shared-quota-operator/controllers/status"
	"github.com/sharedquota/shared-quota-operator/controllers/usage"
	"github.com/sharedquota/shared-quota-operator/controllers/wake"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledgerstore"
	"github.com/sharedquota/shared-quota-operator/internal/metrics"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
	"github.com/sharedquota/shared-quota-operator/internal/report"
	"github.com/sharedquota/shared-quota-operator/internal/waiting"
	"github.com/sharedquota/shared-quota-operator/webhooks/workloads"
)

// teller tells people of outcomes, by metrics and events. It also tells the list of workloads that wait.
type teller struct {
	*metrics.Metrics
	events *report.Refusals
	// waits is nil if no workload is woken.
	waits *waiting.List
}

// Refused implements outcomes.Observer.
func (t teller) Refused(refusal outcomes.Refusal) {
	t.Metrics.Refused(refusal)
	t.events.Refused(refusal)
}

// Decided implements outcomes.Observer.
func (t teller) Decided(decision outcomes.Decision) {
	if t.waits != nil {
		t.waits.Decided(decision)
	}
}

// tell makes the metrics, the lags and the teller.
func (o *operator) tell(context.Context) error {
	o.metrics = metrics.New(metricsregistry.Registry)
	o.metrics.Contact(o.contact.Silence)
	o.serving.Server.Observe(o.metrics)
	o.statusLag, o.viewsLag = status.NewLag(o.clock, o.manager.Elected()), status.NewLag(o.clock, o.manager.Elected())
	told := teller{Metrics: o.metrics, events: report.NewRefusals(
		o.clock, o.manager.GetClient(), o.manager.GetAPIReader(), o.manager.GetEventRecorder(report.RecorderName))}
	if o.people.Waiting {
		told.waits = o.waits
	}
	o.told = told
	return add(o.manager, told.events)
}

// show wakes the controllers of the status and the views, and the waker.
func (o *operator) show(quotas []string) {
	o.statusLag.Changed(quotas)
	o.viewsLag.Changed(quotas)
	lookSoon(quotas, o.statuses, o.views, o.wakes)
}

// status adds the controllers of the status and the views, which people read, and makes each scrape read the figures of
// every quota.
func (o *operator) status(context.Context) error {
	parts := status.Parts{
		Clock: o.clock, Client: o.manager.GetClient(),
		Ledgers:    status.Ledgers{Live: o.manager.GetAPIReader(), Intact: ledgerstore.Intact, Size: ledgerstore.Size},
		Evaluators: o.evaluators, Define: o.index.Define, Count: o.count, Group: o.group,
		Problems: func(quota string) []status.Problem {
			all := o.counting.Watches.Problems(quota)
			known := make([]status.Problem, 0, len(all))
			for _, problem := range all {
				known = append(known, status.Problem(problem))
			}
			return known
		},
		Served:   usage.NewOffer(o.clock, discovery.ToDiscoveryInterfaceWithContext(o.clients.typed.Discovery())).Namespaced,
		Settings: o.settings, Proofs: &o.proofs, Waiting: o.waits, WakeOwners: o.people.Waiting && o.flags.wakeOwners,
		StatusChanged: o.statuses.source(), ViewsChanged: o.views.source(), StatusLag: o.statusLag, ViewsLag: o.viewsLag,
		Recorder: o.manager.GetEventRecorder(report.RecorderName), Namespaces: o.flags.metrics.namespaces,
		Life: o.flags.reservations.life, Every: o.flags.statusEvery,
	}
	o.metrics.Follow(o.manager.Elected(), status.NewFiguresReader(parts).Read)
	return errors.Join(
		add(o.manager, status.NewSurgers(parts, o.replacements.Surges)),
		register(o.manager, status.NewQuotaController(parts), status.NewViewController(parts)))
}

// workloads serves the webhook that judges workloads. The evaluators make no calls: device classes that they don't know
// aren't judged.
func (o *operator) workloads(context.Context) error {
	watched := workloads.NewWatched(o.manager.GetCache())
	o.manager.GetWebhookServer().Register(workloads.Path, workloads.NewEndpoint(workloads.NewHandler(workloads.Parts{
		Clock: o.clock, Coverage: o.index, Ledgers: o.group, Metrics: o.metrics,
		Evaluators:   evaluation.New(o.clock, evaluation.ClaimSources{DeviceClasses: o.claims.DeviceClasses}),
		Events:       workloads.NewEvents(o.clock, o.manager.GetEventRecorder(report.RecorderName)),
		Surroundings: watched, Live: o.manager.GetAPIReader(),
	})))
	return add(o.manager, watched)
}

// waiting has the replicas tell each other which workloads wait for room, and adds the controller that wakes them.
func (o *operator) waiting(context.Context) error {
	o.waits.OnChange(func(change waiting.Change) {
		lookSoon(change.Quotas, o.wakes)
		if change.Shown {
			lookSoon(change.Quotas, o.statuses, o.views)
		}
	})
	told := wake.ExchangeParts{Clock: o.clock, List: o.waits, Process: string(uuid.NewUUID()), Elected: o.manager.Elected()}
	if o.flags.namespace != "" {
		told.ConfigMaps = o.clients.typed.CoreV1().ConfigMaps(o.flags.namespace)
	}
	workloads := wake.NewWorkloads(o.clients.untyped, o.clients.metadata)
	err := add(o.manager, wake.NewExchange(told), wake.NewReviewer(o.clock, o.waits, workloads))
	if err != nil || !o.flags.wakeOwners {
		return err
	}
	return register(o.manager, wake.NewWaker(wake.WakerParts{
		Clock: o.clock, Client: o.manager.GetClient(), Count: o.count, Group: o.group, List: o.waits, Workloads: workloads,
		Metrics: o.metrics, Changed: o.wakes.source(),
	}))
}
