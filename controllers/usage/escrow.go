// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

const (
	// escrowTimeout bounds the look and the write for one ledger.
	escrowTimeout = 30 * time.Second
	// escrowAgain is after which time it is tried again to end an escrow.
	escrowAgain = time.Second
)

// Escrows ends the escrows of replicas that are gone. Their grants are unknown. So an escrow stays charged until
// nothing of that can be stored any more, and then until a count includes all that is stored.
type Escrows struct {
	*background
	*Parts
	newest NewestLimited
}

// NewEscrows makes Escrows that work until ctx ends.
func NewEscrows(ctx context.Context, parts *Parts, newest NewestLimited) *Escrows {
	return &Escrows{background: newBackground(ctx, parts.Clock), Parts: parts, newest: newest}
}

// Follow ends, in the background, the escrows of a quota that have expired. It returns after which time to
// call it again; zero if there is nothing to do.
func (e *Escrows) Follow(quota *quotav1.ClusterResourceQuota, expired []ledger.Escrow) time.Duration {
	if len(expired) == 0 {
		return 0
	}
	e.begin(quota.Name, func() { e.end(quota, expired) }, nothing)
	return escrowAgain
}

func (e *Escrows) end(quota *quotav1.ClusterResourceQuota, expired []ledger.Escrow) {
	ctx, cancel := context.WithTimeout(e.ctx, escrowTimeout)
	defer cancel()
	newest, err := e.newest(ctx, quota)
	count := NewCounter(e.Count).Observe(quota.Name, e.Group.Current(quota.Name))
	if err == nil && count != nil {
		err = e.Group.Edit(ctx, quota.Name, func(draft *ledger.Draft) {
			for _, escrow := range expired {
				draft.SettleEscrow(escrow, *count, newest)
			}
		})
	}
	if err != nil && !errors.Is(err, machine.ErrNoLedger) && e.ctx.Err() == nil {
		log.FromContext(e.ctx).Error(err, "The escrow of a replica that is gone can't be ended, and holds room until it is",
			"quota", quota.Name)
	}
}
