// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"fmt"

	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"

	"github.com/sharedquota/shared-quota-operator/controllers/exchange"
	"github.com/sharedquota/shared-quota-operator/controllers/trigger"
	"github.com/sharedquota/shared-quota-operator/controllers/wake"
	"github.com/sharedquota/shared-quota-operator/internal/waiting"
)

// waiting has the replicas tell each other which workloads wait for room, and returns the controllers that wake them.
func (p *parts) waiting() ([]controller, error) {
	p.options.Waiting.OnChange(p.waitingChanged)
	configMaps, err := p.ownConfigMaps()
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfigAndClient(p.mgr.GetConfig(), p.mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making the client of workloads: %w", err)
	}
	named, err := metadata.NewForConfigAndClient(metadata.ConfigFor(p.mgr.GetConfig()), p.mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making the client of names: %w", err)
	}
	workloads := wake.NewWorkloads(objects, named)
	err = addRunnables(p.mgr,
		exchange.New(exchange.Parts{
			Topic: exchange.Topic{
				About: "which workloads wait", Label: "quota.sharedquota.dev/waiting", Prefix: "shared-quota-waiting-", Key: "owners",
			},
			Clock: p.clock, ConfigMaps: configMaps, Content: p.options.Waiting, Process: p.options.Process, Elected: p.mgr.Elected(),
		}),
		wake.NewReviewer(p.clock, p.options.Waiting, workloads))
	if err != nil || !p.options.WakeOwners {
		return nil, err
	}
	return []controller{wake.NewWaker(wake.WakerParts{
		Clock: p.clock, Client: p.mgr.GetClient(), Count: p.count, Group: p.group, List: p.options.Waiting, Workloads: workloads,
		Metrics: p.metrics, Changed: p.wakes,
	})}, nil
}

// waitingChanged has the controllers look at quotas of which other workloads wait, or wait again.
func (p *parts) waitingChanged(change waiting.Change) {
	triggers := []*trigger.Trigger{p.wakes}
	if change.Shown {
		triggers = append(triggers, p.statuses, p.views)
	}
	for _, reconcile := range triggers {
		reconcile.FireWithin(change.Quotas, lookWithin)
	}
}

// ownConfigMaps is a client of the ConfigMaps in the operator's namespace; nil if it has none.
func (p *parts) ownConfigMaps() (corev1client.ConfigMapInterface, error) {
	if p.options.Namespace == "" {
		return nil, nil //nolint:nilnil // an operator without a namespace has no ConfigMaps
	}
	core, err := corev1client.NewForConfigAndClient(protobuf(p.mgr.GetConfig()), p.mgr.GetHTTPClient())
	if err != nil {
		return nil, errors.Join(errors.New("making the client of ConfigMaps"), err)
	}
	return core.ConfigMaps(p.options.Namespace), nil
}
