// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

const (
	// recountTimeout bounds the write of one ledger.
	recountTimeout = 10 * time.Second
	// recountAgain is after which time a recount that failed is tried again, or to list what
	// couldn't be listed.
	recountAgain = 5 * time.Second
)

// Recounts have quotas counted again before anything is granted under them, because what
// a ledger says is used may be from before the API server stopped to ask. There are two
// steps:
//
//  1. Forget has a ledger forget what is used. From then on it grants nothing.
//  2. Follow looks, live, how far a count must have come to include all objects that are
//     stored, and demands that of the ledger. A leader that has seen less, such as one
//     that was deposed, can't settle.
//
// The second step may take long, and fail. It is taken by whoever leads then. What can't be
// listed is demanded later, and keeps nothing else from being counted.
type Recounts struct {
	// ctx ends all looks.
	ctx    context.Context //nolint:containedctx // the process's, for looks that outlive a reconcile
	clock  clock.PassiveClock
	group  *driver.Group
	newest NewestLimited

	// mu guards what follows.
	mu sync.Mutex
	// quota name -> the Forget that is being followed
	following map[string]uint64
	// quota UID -> when it was last tried to list what couldn't be listed
	listed map[types.UID]time.Time
}

// NewRecounts makes Recounts that work until ctx ends.
func NewRecounts(ctx context.Context, clock clock.PassiveClock, group *driver.Group, newest NewestLimited) *Recounts {
	return &Recounts{
		ctx: ctx, clock: clock, group: group, newest: newest, following: map[string]uint64{}, listed: map[types.UID]time.Time{},
	}
}

// Forget has a quota's ledger forget what is used.
func (r *Recounts) Forget(ctx context.Context, quota string, uid types.UID) error {
	ctx, cancel := context.WithTimeout(ctx, recountTimeout)
	defer cancel()
	err := r.group.Impose(ctx, quota, uid, func(draft *ledger.Draft) { draft.Forget(r.clock.Now()) })
	if err != nil {
		return fmt.Errorf("forgetting the usage of quota %s: %w", quota, err)
	}
	return nil
}

// Follow takes the second step, in the background, if the first was taken. It returns
// after which time to call it again; zero if there is nothing to do.
func (r *Recounts) Follow(quota *quotav1.ClusterResourceQuota) time.Duration {
	state := r.group.Current(quota.Name)
	mark, unlisted := state.Forgotten(), state.Unlisted()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case mark == 0 && len(unlisted) == 0:
		delete(r.listed, quota.UID)
		return 0
	case mark == 0:
		return r.lockedList(quota, unlisted)
	}
	if r.following[quota.Name] != mark {
		r.following[quota.Name] = mark
		go r.demand(quota, mark)
	}
	return recountAgain
}

// lockedList tries again to list what couldn't be listed, every five seconds.
func (r *Recounts) lockedList(quota *quotav1.ClusterResourceQuota, unlisted []schema.GroupResource) time.Duration {
	now := r.clock.Now()
	if left := r.listed[quota.UID].Add(recountAgain).Sub(now); left > 0 {
		return left
	}
	maps.DeleteFunc(r.listed, func(_ types.UID, at time.Time) bool { return now.Sub(at) > recountTimeout }) // of deleted quotas
	r.listed[quota.UID] = now
	go r.list(quota, unlisted)
	return recountAgain
}

func (r *Recounts) list(quota *quotav1.ClusterResourceQuota, unlisted []schema.GroupResource) {
	newest, err := r.newest(r.ctx, quota, unlisted...)
	r.edit(quota, err, func(draft *ledger.Draft) { draft.Listed(newest) })
}

func (r *Recounts) demand(quota *quotav1.ClusterResourceQuota, mark uint64) {
	defer r.end(quota.Name, mark)
	newest, err := r.newest(r.ctx, quota)
	for resource, version := range newest {
		if version == ledger.Unlisted {
			log.FromContext(r.ctx).Info("A resource can't be listed, and nothing is granted of what is counted from it until it can",
				"quota", quota.Name, "resource", resource.String())
		}
	}
	r.edit(quota, err, func(draft *ledger.Draft) { draft.Require(mark, newest) })
}

// edit changes the ledger, if there was no error before.
func (r *Recounts) edit(quota *quotav1.ClusterResourceQuota, err error, change func(*ledger.Draft)) {
	if err == nil {
		ctx, cancel := context.WithTimeout(r.ctx, recountTimeout)
		defer cancel()
		err = r.group.Edit(ctx, quota.Name, change)
	}
	if errors.Is(err, machine.ErrNoLedger) {
		return // another one is counted when it is made
	}
	if err != nil && r.ctx.Err() == nil {
		log.FromContext(r.ctx).Error(err, "A quota can't be counted anew, and grants nothing until it is", "quota", quota.Name)
	}
}

func (r *Recounts) end(quota string, mark uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.following[quota] == mark {
		delete(r.following, quota)
	}
}
