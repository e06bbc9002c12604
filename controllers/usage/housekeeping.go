// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	advanceEvery = time.Second
	auditEvery   = 10 * time.Minute
)

// Housekeeping does the work that no event asks for: it takes account of the
// time, and audits the counts. A deleted object is remembered for as long as a
// reservation for it may turn up: twice its life.
func Housekeeping(parts *Parts) manager.RunnableFunc {
	return func(ctx context.Context) error {
		advance, audit := parts.Clock.NewTicker(advanceEvery), parts.Clock.NewTicker(auditEvery)
		defer advance.Stop()
		defer audit.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-advance.C():
				parts.Count.Advance(parts.Clock.Now(), 2*parts.Life)
			case <-audit.C():
				for _, quota := range parts.Count.Quotas() {
					for resource, by := range parts.Count.Audit(quota, parts.Clock.Now()) {
						parts.Outcomes.Drifted(quota, string(resource))
						log.FromContext(ctx).Error(nil, "Repaired a count that had drifted",
							"quota", quota, "resource", resource, "by", by.String())
					}
				}
			}
		}
	}
}
