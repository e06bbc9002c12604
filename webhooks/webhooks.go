// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhooks lists all webhook endpoints, and has the one that answers the operator's own probes.
package webhooks

import (
	"context"
	"fmt"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sharedquota/shared-quota-operator/internal/contact"
	"github.com/sharedquota/shared-quota-operator/internal/coverage"
	"github.com/sharedquota/shared-quota-operator/internal/reach"
	"github.com/sharedquota/shared-quota-operator/webhooks/objects"
	"github.com/sharedquota/shared-quota-operator/webhooks/quotas"
	"github.com/sharedquota/shared-quota-operator/webhooks/workloads"
)

// Paths returns where the endpoints are served.
func Paths() reach.Paths {
	return reach.Paths{Objects: objects.Path, Workloads: workloads.Path, Quotas: quotas.Path, Probe: probePath}
}

// Parts are what the endpoints work with. Register adds what they read.
type Parts struct {
	Objects   objects.Parts
	Workloads workloads.Parts
	// Edits may be nil: then nobody remembers who changed a quota.
	Edits *quotas.Edits
}

// Register adds all endpoints to the manager's server, and what tells of refusals
// to the manager. Protected namespaces are those that no quota limits.
func Register(
	ctx context.Context, mgr ctrl.Manager, parts Parts, index *coverage.Index, fences *quotas.Fences,
	contact *contact.Contact, protected []string,
) error {
	if err := mgr.Add(parts.Objects.Refusals); err != nil {
		return fmt.Errorf("adding what tells of refusals: %w", err)
	}
	lookup, err := newLookup(mgr)
	if err != nil {
		return err
	}
	if parts.Objects.Natives, err = objects.NewNatives(ctx, mgr.GetCache(), mgr.GetAPIReader()); err != nil {
		return err
	}
	named, err := metadata.NewForConfigAndClient(metadata.ConfigFor(mgr.GetConfig()), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making the client of names: %w", err)
	}
	parts.Objects.Names = objects.NewNames(named)
	watched := workloads.NewWatched(mgr.GetCache())
	if err := mgr.Add(watched); err != nil {
		return fmt.Errorf("adding what watches what admission goes by: %w", err)
	}
	parts.Workloads.Surroundings, parts.Workloads.Live = watched, mgr.GetAPIReader()
	validator := quotas.NewValidator(quotas.NewWarner(index, parts.Objects.Evaluators, lookup, protected), fences, parts.Edits)
	server := mgr.GetWebhookServer()
	endpoint := objects.NewEndpoint(objects.NewHandler(parts.Objects), parts.Objects.Metrics)
	server.Register(objects.Path+"/", endpoint)
	server.Register(objects.Path, endpoint) // an older release wrote entries without a question
	server.Register(workloads.Path, workloads.NewEndpoint(workloads.NewHandler(parts.Workloads)))
	server.Register(probePath+"/", newProbe())
	validating := admission.WithValidator(mgr.GetScheme(), validator)
	validating.Handler = inContact{handler: validating.Handler, contact: contact}
	server.Register(quotas.Path, validating)
	return nil
}

func newLookup(mgr ctrl.Manager) (*quotas.Lookup, error) {
	served, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making the client of discovery: %w", err)
	}
	objects, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making the client of what has no type: %w", err)
	}
	return quotas.NewLookup(served, objects), nil
}
