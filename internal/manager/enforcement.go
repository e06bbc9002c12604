// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sharedquota/shared-quota-operator/controllers/status"
	"github.com/sharedquota/shared-quota-operator/controllers/usage"
	configurationcontroller "github.com/sharedquota/shared-quota-operator/controllers/webhookconfig"
	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
	"github.com/sharedquota/shared-quota-operator/internal/ledgerstore"
	"github.com/sharedquota/shared-quota-operator/internal/namespaces"
	"github.com/sharedquota/shared-quota-operator/internal/serving"
	"github.com/sharedquota/shared-quota-operator/internal/waiting"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
	"github.com/sharedquota/shared-quota-operator/webhooks/objects"
	"github.com/sharedquota/shared-quota-operator/webhooks/quotas"
)

// lookWithin is how soon controllers look at a quota whose count or ledger has changed, which may be hundreds of times
// a second. Urgent changes are settled by the quota's machine.
const lookWithin = 50 * time.Millisecond

// evaluate makes the evaluators.
func (o *operator) evaluate(ctx context.Context) (err error) {
	o.claims, o.classes, err = usage.Sources(ctx, o.manager)
	o.evaluators = evaluation.New(o.clock, o.claims, o.limited.Limited()...)
	return err
}

// cover makes the Index, which follows quotas and namespaces by watches of its own.
func (o *operator) cover(ctx context.Context) error {
	from, err := client.NewWithWatch(o.manager.GetConfig(), o.clientOptions())
	if err != nil {
		return fmt.Errorf("making the client that watches quotas and namespaces: %w", err)
	}
	o.index = namespaces.NewIndex(o.clock, o.manager.GetAPIReader())
	o.index.Follow(ctx, from)
	return nil
}

// charge makes the machines and their store, which reads past the cache, and watches over the contact. All end, by stop,
// after the manager has: requests that the webhooks still answer are charged.
func (o *operator) charge(ctx context.Context) error {
	live, err := client.New(o.manager.GetConfig(), o.clientOptions())
	if err != nil {
		return fmt.Errorf("making the client of ledgers: %w", err)
	}
	charging, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var watching sync.WaitGroup
	watching.Go(func() { monitoring(o.contact, o.history, o.manager.GetAPIReader()).Run(charging) })
	o.group = driver.New(charging, o.clock, proved{ledgerstore.New(live), o.contact, o.history}, observing{o.metrics, o.history},
		driverOptions(o.flags, o.contact.Replica()))
	o.stop = func() {
		drain(charging, o.group)
		cancel()
		o.group.Wait()
		watching.Wait()
	}
	return nil
}

func (o *operator) clientOptions() client.Options {
	return client.Options{
		HTTPClient: o.manager.GetHTTPClient(), Scheme: o.manager.GetScheme(), Mapper: o.manager.GetRESTMapper(),
	}
}

// countObjects makes the count, which the machines settle. Objects that can't be matched with a quota are logged and counted.
func (o *operator) countObjects(ctx context.Context) error {
	o.count = counting.New(o.evaluators, o.counted, func(quotas []string) { o.group.Counted(quotas, true) })
	o.count.OnProgress(o.settle)
	o.group.Follow(usage.NewCounter(o.count))
	o.group.OnTrouble(func(quota string) {
		o.ledgers.fire([]string{quota}) // a ledger that takes no count may be of another history: see usage.Recovery
		o.statuses.fire([]string{quota})
	})
	o.count.OnUnmatched(func(quota string, resource schema.GroupResource, err error) {
		log.FromContext(ctx).Error(err, "Objects can't be matched with the scopes of a quota. They count in full",
			"quota", quota, "resource", resource.String())
		o.metrics.Unmatched(quota, resource.String())
	})
	return nil
}

// counted takes it that the count of quotas has changed, which their machines settle.
func (o *operator) counted(quotas []string) {
	o.settle(quotas)
	o.show(quotas)
}

// settle has the machines of quotas settle the count.
func (o *operator) settle(quotas []string) {
	o.group.Counted(quotas, false)
	for _, quota := range quotas {
		o.counting.Joins.Follow(quota)
	}
}

// changed wakes the controllers of quotas whose ledger or sources have changed.
func (o *operator) changed(quotas []string) {
	lookSoon(quotas, o.ledgers)
	o.show(quotas)
}

func lookSoon(quotas []string, triggers ...*trigger) {
	for _, reconcile := range triggers {
		reconcile.fireWithin(quotas, lookWithin)
	}
}

// objects serves the webhook that charges requests.
func (o *operator) objects(ctx context.Context) error {
	natives, err := objects.NewNatives(ctx, o.manager.GetCache(), o.manager.GetAPIReader())
	if err != nil {
		return err
	}
	o.replacements = objects.NewReplacements(objects.ReplacementParts{
		Clock: o.clock, Outcomes: o.told,
		Typed: o.clients.typed, Untyped: o.clients.untyped, Metadata: o.clients.metadata,
		KubeVirt: strings.Fields(strings.ReplaceAll(o.flags.kubevirt, ",", " ")),
	})
	parts := objects.Parts{
		Clock: o.clock, Evaluators: o.evaluators, Coverage: o.index, Charger: o.group, Outcomes: o.told, Contact: o.contact,
		Natives: natives, Names: objects.NewNames(o.clients.metadata), AdmitByDefault: o.reached.AdmitsByDefault(),
		Replacements:   o.replacements,
		ReservationTTL: o.flags.reservations.life, MaxDoubtful: o.flags.reservations.maxDoubtful,
	}
	if o.people.Waiting {
		parts.Waits = waiting.Waits
	}
	endpoint := objects.NewEndpoint(objects.NewHandler(parts))
	o.manager.GetWebhookServer().Register(objects.Path+"/", endpoint)
	o.manager.GetWebhookServer().Register(objects.Path, endpoint) // an older release wrote entries without a question
	return nil
}

// quotas serves the webhook that validates quotas.
func (o *operator) quotas(context.Context) error {
	validating := admission.WithValidator(o.manager.GetScheme(), quotas.NewValidator(&quotas.Warner{
		Clock: o.clock, Namespaces: o.index, Evaluators: o.evaluators, Protected: o.reached.Protected,
		Cluster: quotas.NewLookup(
			o.clients.typed.Discovery(), o.clients.untyped, o.clients.typed, o.clients.metadata, o.manager.GetCache()),
	}, quotas.NewFences(o.clock, o.group, o.flags.reservations.life)))
	validating.Handler = inContact{handler: validating.Handler, contact: o.contact}
	o.manager.GetWebhookServer().Register(quotas.Path, validating)
	return nil
}

// probe serves the webhook that shows by which configuration the API server asks.
func (o *operator) probe(context.Context) error {
	o.manager.GetWebhookServer().Register(probePath+"/", newProbe())
	return nil
}

// usage adds the controllers of the count and of ledgers.
func (o *operator) usage(ctx context.Context) error {
	served, err := usage.NewDiscovery(o.clock, o.manager.GetConfig(), o.manager.GetHTTPClient())
	if err != nil {
		return err
	}
	o.counting = usage.NewController(ctx, usage.Parts{
		Clock: o.clock, Client: o.manager.GetClient(), Live: o.manager.GetAPIReader(),
		Events: usage.EventSource{Objects: o.clients.typed, Metadata: o.clients.metadata}, Discovery: served,
		Evaluators: o.evaluators, Define: o.index.Define, Count: o.count, Group: o.group, Decode: ledgerstore.Snapshot,
		Outcomes: o.told, OnChange: o.changed, Changed: o.ledgers.source(), Begin: status.Begin,
		Life: o.flags.reservations.life, MaxDoubtful: o.flags.reservations.maxDoubtful,
	})
	o.classes.OnChange(func() { o.counting.Watches.Remeasure(usage.DeviceClaims) })
	return errors.Join(
		add(o.manager, o.counting.Watches, usage.Housekeeping(&o.counting.Parts)),
		register(o.manager, o.counting, usage.NewLedgerController(&o.counting.Parts)))
}

// settings returns the settings of the webhook configuration, with the authorities that the API server must trust now.
func (o *operator) settings() webhookconfig.Settings {
	current := o.reached
	current.Endpoint = o.serving.Endpoint
	current.Endpoint.CABundle = o.serving.Certificates.Bundle()
	return current
}

// webhookConfiguration adds the controller of the webhook configuration, and the prober that shows that it is loaded.
func (o *operator) webhookConfiguration(context.Context) error {
	var configured *configurationcontroller.Controller
	prober, err := configurationcontroller.NewProber(o.manager, configurationcontroller.ProberParts{
		Clock: o.clock, Proofs: &o.proofs, Outcomes: o.told, Changed: o.statuses.fire, Recovered: func() { configured.Exposed() },
	})
	if err != nil {
		return err
	}
	options := configurationcontroller.Options{
		Settings: o.settings,
		Owners:   configurationcontroller.Owners(o.manager.GetAPIReader(), o.flags.namespace),
		Leads:    o.lease.leads(o.manager.GetAPIReader()),
		Define:   o.index.Define, Forget: o.counting.Recounts.Forget,
		Changed: o.configuration.source(), Look: func(within time.Duration) {
			o.configuration.fireWithin([]string{webhookconfig.ConfigurationName}, within)
		},
		Proofs: &o.proofs, Observed: func(quotas []string) {
			prober.Wake()
			o.statuses.fire(quotas)
		},
	}
	if o.people.Preflight {
		options.Judged = fitting.Makes
	}
	configured = configurationcontroller.NewController(o.clock, o.manager.GetClient(), o.evaluators, options)
	return errors.Join(add(o.manager, prober), register(o.manager, configured))
}

// certificates adds the controller of certificates that change.
func (o *operator) certificates(context.Context) error {
	o.serving.Certificates.OnChange(func() { o.configuration.fire([]string{webhookconfig.ConfigurationName}) })
	var from serving.Source
	switch {
	case o.serving.Directory != "":
		from = o.serving.Directory
	case o.serving.Secret.Name != "":
		issuer := serving.NewIssuer(o.serving.Hosts[0], o.serving.Hosts[1:]...)
		from = serving.NewSecret(o.clock, o.manager.GetClient(), o.serving.Secret, issuer)
	default:
		return nil // the only one lives as long as the process
	}
	return register(o.manager, serving.NewController(o.manager.GetClient(), o.serving.Certificates, from, o.metrics.CertificateEnds))
}

// callers follows the token that callers of the webhooks must present.
func (o *operator) callers(ctx context.Context) error {
	return o.serving.Callers.Follow(ctx, o.manager.GetCache(), o.manager.GetAPIReader())
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
