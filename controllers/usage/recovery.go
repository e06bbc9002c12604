// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/metrics"
	"github.com/sharedquota/shared-quota-operator/internal/trail"
)

// lookSoon is how soon is looked again where something is about to be seen.
const lookSoon = 20 * time.Millisecond

// recoveryTimeout bounds one look and step, of which the longest lists all objects
// that a quota limits; after it the work queue tries again.
const recoveryTimeout = 2 * time.Minute

// Decode reads a stored ledger.
type Decode func(*quotav1.QuotaLedger) (machine.Snapshot, error)

// Recovery makes ledgers: each quota's first, and another where somebody deleted or
// edited the one there was. A ledger must not grant anything unless all that is in
// flight is in it, so it is made in these steps:
//
//  1. It is created sealed, and grants nothing.
//  2. It is given what is in flight. That is nothing, where the quota's status
//     names no ledger: none has been opened. It is what the ledger that the status
//     names said last, where this process saw that one to its end. Otherwise nobody
//     knows: everything that had been admitted has been stored or has failed once
//     the life of a reservation has passed, and then a live look tells how far a
//     count must have come to include it.
//  3. The quota's status is made to name it.
//  4. It is opened.
//
// Each step swaps what the one before has read, and a ledger is opened only where
// the status names it. So the ledgers that were ever open form a chain: step 3 fails
// for whoever has read, in step 2, that another one came last. A ledger that had
// granted something in between would have been named, and nothing is granted by one
// that is no longer stored. Whoever finds a ledger sealed and named only has to open
// it.
//
// An edit is taken back in one swap where it is known what it was made of. Nothing
// has been granted on it.
type Recovery struct {
	clock   clock.PassiveClock
	client  client.Client
	live    client.Reader
	group   *driver.Group
	trail   *trail.Trail
	decode  Decode
	newest  NewestLimited
	metrics *metrics.Metrics
	// life of a reservation.
	life time.Duration
}

// NewRecovery makes a Recovery. The client may read from a cache, live must not.
func NewRecovery(
	clock clock.PassiveClock, client client.Client, live client.Reader, group *driver.Group, trail *trail.Trail,
	decode Decode, newest NewestLimited, metrics *metrics.Metrics, life time.Duration,
) *Recovery {
	return &Recovery{
		clock: clock, client: client, live: live, group: group, trail: trail,
		decode: decode, newest: newest, metrics: metrics, life: life,
	}
}

// found is what is stored of a quota.
type found struct {
	quota *quotav1.ClusterResourceQuota
	// ledger is nil where there is none.
	ledger   *quotav1.QuotaLedger
	snapshot machine.Snapshot
}

// Ensure sees to it that the quota has an open ledger. It returns how long until it
// has to be called again; zero where all is well.
func (r *Recovery) Ensure(ctx context.Context, quota *quotav1.ClusterResourceQuota) (time.Duration, error) {
	if r.isOpen(ctx, quota) {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, recoveryTimeout)
	defer cancel()
	// Every event of a quota comes here. While all there is to do is to wait, the
	// caches may say so: when they know of more, they ask again.
	if cached, err := r.look(ctx, r.client, quota); err == nil && r.left(cached) > 0 {
		return r.left(cached), nil
	}
	stored, err := r.look(ctx, r.live, quota)
	if err != nil {
		return 0, err
	}
	wait, err := r.step(ctx, stored)
	if errors.Is(err, machine.ErrConflict) || apierrors.IsConflict(err) {
		return lookSoon, nil // somebody else was first
	}
	return wait, err
}

// Counted returns how far the quota's ledger has counted each resource, by what this process
// knows or has cached.
func (r *Recovery) Counted(ctx context.Context, quota *quotav1.ClusterResourceQuota) (map[schema.GroupResource]uint64, error) {
	if known := r.group.Current(quota.Name); known.Quota == quota.UID {
		return known.Counted, nil
	}
	cached, err := r.look(ctx, r.client, quota)
	return cached.snapshot.State.Counted, err
}

// isOpen reports whether the quota's machine knows an open ledger, and the cache has it,
// too. If the machine read it before the cache's first list, no event tells that it is gone.
func (r *Recovery) isOpen(ctx context.Context, quota *quotav1.ClusterResourceQuota) bool {
	known, cached := r.group.Known(quota.Name), &quotav1.QuotaLedger{}
	return known.State.Quota == quota.UID && known.State.Sealed.IsZero() &&
		r.client.Get(ctx, client.ObjectKeyFromObject(quota), cached) == nil && cached.UID == known.Version.UID
}

// look reads the quota and its ledger.
func (r *Recovery) look(ctx context.Context, from client.Reader, quota *quotav1.ClusterResourceQuota) (found, error) {
	stored := found{quota: &quotav1.ClusterResourceQuota{}, ledger: &quotav1.QuotaLedger{}}
	key := client.ObjectKeyFromObject(quota)
	// The ledger first: whichever was open before it has been named by then.
	err := from.Get(ctx, key, stored.ledger)
	if apierrors.IsNotFound(err) {
		stored.ledger, err = nil, nil
	}
	if err != nil {
		return found{}, fmt.Errorf("reading ledger %s: %w", quota.Name, err)
	}
	if err := from.Get(ctx, key, stored.quota); err != nil {
		return found{}, fmt.Errorf("reading quota %s: %w", quota.Name, err)
	}
	if stored.quota.UID != quota.UID {
		return found{}, fmt.Errorf("quota %s has been replaced: %w", quota.Name, machine.ErrConflict)
	}
	if stored.ledger != nil {
		stored.snapshot, err = r.decode(stored.ledger)
	}
	return stored, err
}

func (r *Recovery) step(ctx context.Context, stored found) (time.Duration, error) {
	switch state := stored.snapshot.State; {
	case stored.ledger == nil:
		return lookSoon, r.create(ctx, stored)
	case stored.snapshot.Edited:
		return lookSoon, r.undo(ctx, stored)
	case state.Quota != stored.quota.UID:
		// It was a quota's that had the same name.
		return lookSoon, r.remove(ctx, stored.ledger)
	case state.Sealed.IsZero():
		r.group.Saw(stored.quota.Name, stored.snapshot)
		return 0, nil
	default:
		return r.unseal(ctx, stored)
	}
}

// create makes a ledger that is sealed.
func (r *Recovery) create(ctx context.Context, stored found) error {
	quota := stored.quota
	if quota.Status.Ledger != "" {
		log.FromContext(ctx).Info("Somebody deleted the ledger of a quota. It is being rebuilt", "ledger", quota.Status.Ledger)
		r.metrics.Lost(quota.Name, metrics.Deleted)
	}
	_, err := r.group.Replace(ctx, quota.Name, machine.Version{}, ledger.State{
		Basis: ledger.Basis{Quota: quota.UID}, Sealed: r.clock.Now().Truncate(time.Second),
	})
	return err
}

// undo takes back an edit, or else the ledger. If only single entries can't be read, it
// leaves them out.
func (r *Recovery) undo(ctx context.Context, stored found) error {
	if remains := stored.snapshot.Remains; remains != nil {
		log.FromContext(ctx).Info("The ledger of a quota has entries that can't be read. They are left out", "ledger", stored.ledger.Name)
		r.metrics.Lost(stored.quota.Name, metrics.Edited)
		_, err := r.group.Replace(ctx, stored.quota.Name, stored.snapshot.Version, *remains)
		return err
	}
	last, seen := r.trail.BeforeEdit(stored.ledger)
	if !seen {
		return nil // not by this process, in a moment
	}
	before, err := r.said(last)
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("Somebody edited the ledger of a quota. It is being rebuilt", "restored", before != nil)
	r.metrics.Lost(stored.quota.Name, metrics.Edited)
	if before == nil {
		// What an operator wrote that knew no checksums may never have been named.
		if stored.quota.Status.Ledger == "" {
			if err := r.name(ctx, stored); err != nil {
				return err
			}
		}
		return r.remove(ctx, stored.ledger)
	}
	_, err = r.group.Replace(ctx, stored.quota.Name, stored.snapshot.Version, *before)
	return err
}

// said returns what a ledger said, without entries that can't be read; nil if that isn't
// known.
func (r *Recovery) said(last *quotav1.QuotaLedger) (*ledger.State, error) {
	if last == nil {
		return nil, nil //nolint:nilnil // both are what is known
	}
	snapshot, err := r.decode(last)
	switch {
	case err != nil:
		return nil, err
	case snapshot.Edited:
		return snapshot.Remains, nil
	default:
		return &snapshot.State, nil
	}
}

// remove deletes exactly what was read.
func (r *Recovery) remove(ctx context.Context, object *quotav1.QuotaLedger) error {
	err := r.client.Delete(ctx, object, client.Preconditions{UID: &object.UID, ResourceVersion: &object.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting ledger %s: %w", object.Name, err)
	}
	return nil
}

// unseal opens a ledger once all that is in flight is in it.
func (r *Recovery) unseal(ctx context.Context, stored found) (time.Duration, error) {
	quota, version, state := stored.quota, stored.snapshot.Version, stored.snapshot.State
	if quota.Status.Ledger != stored.ledger.UID {
		complete, wait, err := r.complete(ctx, stored)
		if err != nil || wait > 0 {
			return wait, err
		}
		state = complete
		if version, err = r.group.Replace(ctx, quota.Name, version, state); err != nil {
			return 0, err
		}
		if err := r.name(ctx, stored); err != nil {
			return 0, err
		}
	}
	state.Sealed = time.Time{}
	_, err := r.group.Replace(ctx, quota.Name, version, state)
	return 0, err
}

// name makes the quota's status, as it was read, name the ledger.
func (r *Recovery) name(ctx context.Context, stored found) error {
	named := stored.quota.DeepCopy()
	named.Status.Ledger = stored.ledger.UID
	patch := client.MergeFromWithOptions(stored.quota, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, named, patch); err != nil {
		return fmt.Errorf("naming the ledger of quota %s: %w", named.Name, err)
	}
	return nil
}

// left is how long a sealed ledger stays so if only time can tell what is in flight; zero
// for one that can be opened, and for none.
func (r *Recovery) left(stored found) time.Duration {
	sealed, named := stored.snapshot.State.Sealed, stored.quota.Status.Ledger
	if sealed.IsZero() || named == "" || named == stored.ledger.UID {
		return 0
	}
	if before, err := r.said(r.trail.BeforeDeletion(stored.quota.Name, named)); before != nil || err != nil {
		return 0
	}
	// A second more, for it is stored in whole seconds.
	return sealed.Add(r.life + time.Second).Sub(r.clock.Now())
}

// complete returns the sealed ledger with all that is in flight, or how long until
// it is known.
func (r *Recovery) complete(ctx context.Context, stored found) (ledger.State, time.Duration, error) {
	state, named := stored.snapshot.State, stored.quota.Status.Ledger
	if named == "" {
		return state, 0, nil
	}
	before, err := r.said(r.trail.BeforeDeletion(stored.quota.Name, named))
	switch {
	case err != nil:
		return ledger.State{}, 0, err
	case before != nil:
		return state.Replacing(*before), 0, nil
	}
	if left := r.left(stored); left > 0 {
		return ledger.State{}, left, nil
	}
	counted, err := r.newest(ctx, stored.quota)
	state.Used, state.Counted = nil, counted
	return state, 0, err
}
