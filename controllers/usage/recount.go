// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

const (
	// recountTimeout bounds the write of one ledger.
	recountTimeout = 10 * time.Second
	// recountAgain is the time after which a recount that failed is tried again, and after which resources are listed
	// that couldn't be.
	recountAgain = 5 * time.Second
)

// Recounts make quotas be counted again before anything is granted under them,
// because a ledger's Used may be from before the API server stopped to ask. There
// are two steps:
//
//  1. Forget makes a ledger forget its Used. From then on it grants nothing.
//  2. Follow looks, live, how far a count must have come to include all objects
//     that are stored, and requires that in the ledger. A leader that has seen
//     less, such as one that was deposed, can't settle.
//
// The second step may take long, and fail. It is taken by the leader of that
// time. Resources that can't be listed are required later, and keep nothing else
// from being counted.
type Recounts struct {
	*background
	*Parts
	newest NewestLimited
}

// NewRecounts makes Recounts that work until ctx ends.
func NewRecounts(ctx context.Context, parts *Parts, newest NewestLimited) *Recounts {
	return &Recounts{background: newBackground(ctx, parts.Clock), Parts: parts, newest: newest}
}

// Forget makes a quota's ledger forget its Used.
func (r *Recounts) Forget(ctx context.Context, quota string, uid types.UID) error {
	ctx, cancel := context.WithTimeout(ctx, recountTimeout)
	defer cancel()
	mark := ledger.Forgotten(1 + rand.Uint64N(1<<62)) //nolint:gosec,forbidigo // it only has to be another one
	err := r.Group.Impose(ctx, quota, uid, func(draft *ledger.Draft) { draft.Forget(mark) })
	if err != nil {
		return fmt.Errorf("forgetting the usage of quota %s: %w", quota, err)
	}
	return nil
}

// Follow takes the second step, in the background, if the first was taken. It returns
// after which time to call it again; zero if there is nothing to do.
func (r *Recounts) Follow(quota *quotav1.ClusterResourceQuota) time.Duration {
	state := r.Group.Current(quota.Name)
	switch mark, unlisted := state.Forgotten, state.Unlisted.UnsortedList(); {
	case mark != 0:
		r.begin(quota.Name, func() { r.demand(quota, mark) }, nothing)
	case len(unlisted) > 0:
		r.begin(quota.Name+" unlisted", func() {
			r.list(quota, unlisted)
			r.rest(recountAgain)
		}, nothing)
	default:
		return 0
	}
	return recountAgain
}

func (r *Recounts) list(quota *quotav1.ClusterResourceQuota, unlisted []schema.GroupResource) {
	newest, err := r.newest(r.ctx, quota, unlisted...)
	r.edit(quota, err, func(draft *ledger.Draft) { draft.Listed(newest) })
}

func (r *Recounts) demand(quota *quotav1.ClusterResourceQuota, mark ledger.Forgotten) {
	newest, err := r.newest(r.ctx, quota)
	for resource := range newest.Unlisted {
		log.FromContext(r.ctx).Info("A resource can't be listed, and nothing is granted of what is counted from it until it can",
			"quota", quota.Name, "resource", resource.String())
	}
	r.edit(quota, err, func(draft *ledger.Draft) { draft.Require(mark, newest) })
}

// edit changes the ledger, if there was no error before.
func (r *Recounts) edit(quota *quotav1.ClusterResourceQuota, err error, change func(*ledger.Draft)) {
	if err == nil {
		ctx, cancel := context.WithTimeout(r.ctx, recountTimeout)
		defer cancel()
		err = r.Group.Edit(ctx, quota.Name, change)
	}
	if errors.Is(err, machine.ErrNoLedger) {
		return // another one is counted when it is made
	}
	if err != nil && r.ctx.Err() == nil {
		log.FromContext(r.ctx).Error(err, "A quota can't be counted anew, and grants nothing until it is", "quota", quota.Name)
	}
}
