// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// surgersEvery is how often workloads that took surge are looked at. Younger ones are not.
const surgersEvery = time.Minute

// Surgers has ledgers forget the workloads whose rollouts have ended, while others still hold surge. A ledger by itself
// forgets all at once, when the last has ended.
type Surgers struct {
	Parts

	// surges reports whether a workload still has more pods than it asks for.
	surges func(context.Context, ledger.Surger) (bool, error)
}

var _ manager.LeaderElectionRunnable = &Surgers{}

// NewSurgers makes Surgers.
func NewSurgers(parts Parts, surges func(context.Context, ledger.Surger) (bool, error)) *Surgers {
	return &Surgers{Parts: parts, surges: surges}
}

// NeedLeaderElection says that only the leader runs it.
func (*Surgers) NeedLeaderElection() bool { return true }

// Start looks until the context ends.
func (s *Surgers) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.Clock.After(surgersEvery):
			s.look(ctx)
		}
	}
}

func (s *Surgers) look(ctx context.Context) {
	list := &quotav1.ClusterResourceQuotaList{}
	if err := s.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return // the cache is being filled
	}
	for i := range list.Items {
		quota := list.Items[i].Name
		if ended := s.ended(ctx, s.Group.Current(quota).Surgers); len(ended) > 0 {
			s.forget(ctx, quota, ended)
		}
	}
}

// ended returns the workloads that surge no longer.
func (s *Surgers) ended(ctx context.Context, of map[types.UID]ledger.Surger) (ended []ledger.Surger) {
	for _, surger := range of {
		if s.Clock.Since(surger.Since) < surgersEvery {
			continue
		}
		surges, err := s.surges(ctx, surger)
		if err != nil {
			log.FromContext(ctx).V(1).Info("Can't see whether a workload still surges", "error", err.Error())
		}
		if err == nil && !surges {
			ended = append(ended, surger)
		}
	}
	return ended
}

func (s *Surgers) forget(ctx context.Context, quota string, ended []ledger.Surger) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := s.Group.Edit(ctx, quota, func(draft *ledger.Draft) {
		for _, surger := range ended {
			draft.Calm(surger)
		}
	})
	if err != nil {
		log.FromContext(ctx).V(1).Info("Can't forget that workloads surged. It is tried again", "quota", quota, "error", err.Error())
	}
}
