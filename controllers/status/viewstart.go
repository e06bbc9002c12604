// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

const (
	// viewsWithin is how long a new leader's views wait for the statuses at most.
	viewsWithin = 30 * time.Second
	// viewsEvery is how often a new leader looks whether they still have to.
	viewsEvery = 200 * time.Millisecond
)

// viewStart starts the ViewController of a new leader once every quota's count is complete and its status shows that, or
// viewsWithin has passed. Reading all views, and the first writes of them, cost the API server as much CPU time as counting and
// statuses do, which tell whether quotas are in force.
type viewStart struct {
	*ViewController
	manager ctrl.Manager
}

// Start implements manager.Runnable. Only leaders run it.
func (s viewStart) Start(ctx context.Context) error {
	if !s.await(ctx) {
		return nil
	}
	return s.register(s.manager)
}

// await returns true once views may be written, and false if ctx ends before.
func (s viewStart) await(ctx context.Context) bool {
	timeout, ticker := s.Clock.NewTimer(viewsWithin), s.Clock.NewTicker(viewsEvery)
	defer timeout.Stop()
	defer ticker.Stop()
	for !s.shown(ctx) {
		select {
		case <-ctx.Done():
			return false
		case <-timeout.C():
			return true
		case <-ticker.C():
		}
	}
	return true
}

// shown reports whether all quotas are counted, and have a status that was made by this leader.
func (c *ViewController) shown(ctx context.Context) bool {
	quotas := &quotav1.ClusterResourceQuotaList{}
	if err := c.Client.List(ctx, quotas, client.UnsafeDisableDeepCopy); err != nil {
		return false
	}
	return !slices.ContainsFunc(quotas.Items, func(quota quotav1.ClusterResourceQuota) bool {
		return !c.Define(&quota).IsInvalid() && (!c.StatusLag.WasShown(quota.Name) || !c.figures(&quota).counted)
	})
}

// Register adds the controller to the manager, for when this replica leads.
func (c *ViewController) Register(mgr ctrl.Manager) error {
	if err := mgr.Add(viewStart{c, mgr}); err != nil {
		return fmt.Errorf("adding the start of views: %w", err)
	}
	return nil
}
