/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

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
