// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/report"
	"github.com/sharedquota/shared-quota-operator/webhooks/objects"
	"github.com/sharedquota/shared-quota-operator/webhooks/quotas"
	"github.com/sharedquota/shared-quota-operator/webhooks/workloads"
)

// addWebhooks adds all endpoints to the manager's server, and the parts that they depend on to the manager.
func (o *operator) addWebhooks(ctx context.Context) error {
	server := o.manager.GetWebhookServer()
	charging, err := o.objects(ctx)
	if err != nil {
		return err
	}
	endpoint := objects.NewEndpoint(objects.NewHandler(charging), o.metrics)
	server.Register(objects.Path+"/", endpoint)
	server.Register(objects.Path, endpoint) // an older release wrote entries without a question
	judging, err := o.workloads()
	if err != nil {
		return err
	}
	server.Register(workloads.Path, workloads.NewEndpoint(workloads.NewHandler(judging)))
	server.Register(probePath+"/", newProbe())
	validating := admission.WithValidator(o.manager.GetScheme(), o.quotas())
	validating.Handler = inContact{handler: validating.Handler, contact: o.contact}
	server.Register(quotas.Path, validating)
	return nil
}

// objects returns the parts that charge requests.
func (o *operator) objects(ctx context.Context) (objects.Parts, error) {
	mgr := o.manager
	refusals := objects.NewRefusals(o.clock, mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder(report.RecorderName))
	if err := mgr.Add(refusals); err != nil {
		return objects.Parts{}, fmt.Errorf("adding what tells of refusals: %w", err)
	}
	natives, err := objects.NewNatives(ctx, mgr.GetCache(), mgr.GetAPIReader())
	if err != nil {
		return objects.Parts{}, err
	}
	return objects.Parts{
		Clock: o.clock, Evaluators: o.evaluators, Coverage: o.index, Charger: o.group, Metrics: o.metrics, Contact: o.contact,
		Refusals: refusals, Natives: natives, Names: objects.NewNames(o.clients.metadata), Waiting: o.waits,
		AdmitByDefault: o.reached.AdmitsByDefault(),
		ReservationTTL: o.flags.reservations.life, MaxDoubtful: o.flags.reservations.maxDoubtful,
	}, nil
}

// workloads returns the parts that judge workloads. The evaluators make no calls: device classes that they don't know
// aren't judged.
func (o *operator) workloads() (workloads.Parts, error) {
	watched := workloads.NewWatched(o.manager.GetCache())
	if err := o.manager.Add(watched); err != nil {
		return workloads.Parts{}, fmt.Errorf("adding what watches what admission goes by: %w", err)
	}
	return workloads.Parts{
		Clock: o.clock, Coverage: o.index, Ledgers: o.group, Metrics: o.metrics,
		Evaluators:   evaluation.New(o.clock, evaluation.ClaimSources{DeviceClasses: o.claims.DeviceClasses}),
		Events:       workloads.NewEvents(o.clock, o.manager.GetEventRecorder(report.RecorderName)),
		Surroundings: watched, Live: o.manager.GetAPIReader(),
	}, nil
}

// quotas returns the validator of quotas.
func (o *operator) quotas() *quotas.Validator {
	return quotas.NewValidator(&quotas.Warner{
		Clock: o.clock, Namespaces: o.index, Evaluators: o.evaluators, Protected: o.reached.Protected,
		Cluster: quotas.NewLookup(
			o.clients.typed.Discovery(), o.clients.untyped, o.clients.typed, o.clients.metadata, o.manager.GetCache()),
	}, quotas.NewFences(o.clock, o.group, o.flags.reservations.life))
}
