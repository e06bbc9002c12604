// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

const (
	advanceEvery = time.Second
	auditEvery   = 10 * time.Minute
)

// Housekeeping does the work that no event asks for: it takes account of the
// time, and audits the counts. A deleted object is remembered for as long as a
// reservation for it may turn up.
func Housekeeping(
	clock clock.WithTicker, count *counting.Count, told outcomes.Observer, remember time.Duration,
) manager.RunnableFunc {
	return func(ctx context.Context) error {
		advance, audit := clock.NewTicker(advanceEvery), clock.NewTicker(auditEvery)
		defer advance.Stop()
		defer audit.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-advance.C():
				count.Advance(clock.Now(), remember)
			case <-audit.C():
				for _, quota := range count.Quotas() {
					for resource, by := range count.Audit(quota, clock.Now()) {
						told.Drifted(quota, string(resource))
						log.FromContext(ctx).Error(nil, "Repaired a count that had drifted",
							"quota", quota, "resource", resource, "by", by.String())
					}
				}
			}
		}
	}
}
