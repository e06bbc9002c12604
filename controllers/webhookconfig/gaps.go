// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

const (
	// forgetPatience is how long the first configuration waits for the quotas' use to be forgotten.
	forgetPatience = 10 * time.Second
	// forgetsAtOnce bounds the ledgers that are written for that at the same time. Each of them may wait two
	// seconds for the end of escrows (driver.Group.Impose): with fewer, a thousand quotas would wait for longer
	// than forgetPatience.
	forgetsAtOnce = 200
)

// gaps makes the ledgers of quotas forget their Used, because objects may have been stored without a request to the
// operator.
type gaps struct {
	forget func(ctx context.Context, quota string, uid types.UID) error
	// ended is called when a run has ended; left is true if a ledger of it failed.
	ended func(left bool)

	// mu guards the fields below.
	mu sync.Mutex
	// due are the quotas whose use must be forgotten.
	due map[types.UID]bool
	// running: the due quotas are being worked at.
	running bool
}

// open notes that objects of a quota may have been stored without a request to
// the operator.
func (g *gaps) open(quota types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.due == nil {
		g.due = map[types.UID]bool{}
	}
	g.due[quota] = true
}

// closed reports whether all that was noted is forgotten.
func (g *gaps) closed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.due) == 0 && !g.running
}

// close makes the ledgers of the quotas that still exist forget their Used. It doesn't wait for them.
func (g *gaps) close(ctx context.Context, quotas []webhookconfig.Quota) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running || len(g.due) == 0 {
		return
	}
	due := g.due
	g.due, g.running = nil, true
	go func() {
		var writes errgroup.Group
		writes.SetLimit(forgetsAtOnce)
		for _, quota := range quotas {
			if !due[quota.UID] {
				continue
			}
			writes.Go(func() error {
				err := g.forget(ctx, quota.Name, quota.UID)
				if err != nil {
					g.open(quota.UID)
				}
				return err
			})
		}
		err := writes.Wait()
		if err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "A quota can't be counted anew, or several can't. It is tried again")
		}
		g.mu.Lock()
		g.running = false
		g.mu.Unlock()
		g.ended(err != nil)
	}()
}
