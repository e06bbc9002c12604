// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/metrics"
)

const (
	advanceEvery = time.Second
	auditEvery   = 10 * time.Minute
)

// Housekeeping does what no event asks for: it takes account of the time, and
// audits the counts.
type Housekeeping struct {
	clock   clock.WithTicker
	count   *counting.Count
	metrics *metrics.Metrics
	// remember is how long a deleted object is remembered: as long as a
	// reservation for it may turn up.
	remember time.Duration
}

// NewHousekeeping makes a Runnable for the manager.
func NewHousekeeping(clock clock.WithTicker, count *counting.Count, metrics *metrics.Metrics, remember time.Duration) *Housekeeping {
	return &Housekeeping{clock: clock, count: count, metrics: metrics, remember: remember}
}

// NeedLeaderElection is true: only the leader counts.
func (*Housekeeping) NeedLeaderElection() bool { return true }

// Start works until ctx ends.
func (h *Housekeeping) Start(ctx context.Context) error {
	advance, audit := h.clock.NewTicker(advanceEvery), h.clock.NewTicker(auditEvery)
	defer advance.Stop()
	defer audit.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-advance.C():
			h.count.Advance(h.clock.Now(), h.remember)
		case <-audit.C():
			h.audit(ctx)
		}
	}
}

func (h *Housekeeping) audit(ctx context.Context) {
	for _, quota := range h.count.Quotas() {
		for resource, by := range h.count.Audit(quota, h.clock.Now()) {
			h.metrics.Drifted(quota, string(resource))
			log.FromContext(ctx).Error(nil, "Repaired a count that had drifted",
				"quota", quota, "resource", resource, "by", by.String())
		}
	}
}
