// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/reach"
)

// begin notes which quotas have to be counted again, because the API server may not have
// asked about them while nobody counted: objects may have been stored, maybe for long, as
// where the operator had been removed. Without a configuration these are all. If somebody
// edited it before this controller started, or added to it, these are those that it doesn't
// cover. What happens afterwards is counted as it happens.
func (c *Controller) begin(seen *snapshot) {
	if c.due == nil {
		c.due = map[types.UID]bool{}
	}
	_, current := seen.settings.Edition(seen.current)
	edited := !current || seen.found.Touched()
	for i, quota := range seen.quotas {
		if seen.missing || !c.begun && edited && seen.coverages[i] == reach.Missing {
			c.due[quota.UID] = true
		}
	}
}

// forget has the ledgers of the quotas in due forget what is used, before the configuration is written. If
// that goes on failing for some, the configuration is written all the same, because otherwise nobody would be
// asked about any quota.
func (c *Controller) forget(ctx context.Context, quotas []reach.Quota) error {
	if len(c.due) == 0 {
		c.waiting = time.Time{}
		return nil
	}
	if c.waiting.IsZero() {
		c.waiting = c.clock.Now()
	}
	still := map[types.UID]bool{}
	var mu sync.Mutex // guards still and failures
	var failures []error
	var writes errgroup.Group
	writes.SetLimit(forgetsAtOnce)
	for _, quota := range quotas {
		if !c.due[quota.UID] {
			continue
		}
		writes.Go(func() error {
			if err := c.options.Forget(ctx, quota.Name, quota.UID); err != nil {
				mu.Lock()
				defer mu.Unlock()
				still[quota.UID] = true
				failures = append(failures, err)
			}
			return nil
		})
	}
	_ = writes.Wait() // each failure is kept
	c.due = still
	if len(failures) == 0 {
		c.waiting = time.Time{}
	}
	return errors.Join(failures...)
}
