// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// behindFor is how long a count may be behind the ledger before the API server is asked. Watches are never so late.
const behindFor = 5 * time.Second

// lookSoon is how soon is looked again where something is about to be seen.
const lookSoon = 20 * time.Millisecond

// recoveryTimeout bounds one look and step, of which the longest lists all objects
// that a quota limits; after it the work queue tries again.
const recoveryTimeout = 2 * time.Minute

// Decode reads a stored ledger.
type Decode func(*quotav1.QuotaLedger) (machine.Snapshot, error)

// Recovery makes ledgers: each quota's first, and another if it was deleted or edited, or if it is of another history
// than the cluster (isFuture). A ledger must not grant anything unless everything in flight is in it or has been
// stored. So a ledger is made in these steps:
//
//  1. It is created sealed, and grants nothing. An edited one is deleted first: nothing was
//     granted on it.
//  2. If the quota's status names no ledger, none was ever opened, so nothing is in flight. Otherwise the charges in
//     flight are unknown. The ledger stays sealed until everything has been stored or has failed: for a reservation's
//     life since this leader first saw it. Then a live look finds how far a count must have come to include it.
//  3. The quota's status is made to name it.
//  4. It is opened.
//
// Each step swaps the object that an earlier one has read or made, and a ledger is opened only if the status names it. So the
// ledgers that were ever open form a chain: if another one was opened since step 2 read the status, it was named, and
// step 3 fails. Nothing is granted from a ledger that is no longer stored, except by a replica that holds escrow and
// hasn't noticed: the seal covers that. A ledger that is sealed and named only has to be opened.
type Recovery struct {
	*Parts
	newest NewestLimited
	now    func(ctx context.Context, resource schema.GroupResource) (uint64, error)

	seen sightings

	mu sync.Mutex // guards the fields below
	// behind is since when the count is behind a quota's ledger.
	// quota -> since when
	behind map[string]time.Time
}

// NewRecovery makes a Recovery. The function now returns the resourceVersion of a live list of a resource.
func NewRecovery(
	parts *Parts, newest NewestLimited, now func(ctx context.Context, resource schema.GroupResource) (uint64, error),
) *Recovery {
	return &Recovery{Parts: parts, newest: newest, now: now, behind: map[string]time.Time{}}
}

// found has the stored objects of a quota.
type found struct {
	quota *quotav1.ClusterResourceQuota
	// ledger is nil if there is none.
	ledger   *quotav1.QuotaLedger
	snapshot machine.Snapshot
	// isFuture: the ledger has versions that have not happened.
	isFuture bool
}

// Ensure sees to it that the quota has an open ledger, given how far its objects are counted. It returns how long
// until it has to be called again; zero if all is well.
func (r *Recovery) Ensure(
	ctx context.Context, quota *quotav1.ClusterResourceQuota, counted map[schema.GroupResource]uint64,
) (time.Duration, error) {
	behind, ahead := r.ahead(quota, counted)
	if !ahead && r.isOpen(ctx, quota) {
		r.seen.forget(quota.Name)
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, recoveryTimeout)
	defer cancel()
	if quota.Status.Ledger == "" && !ahead {
		wait, err := r.first(ctx, quota)
		if !isConflict(err) {
			return wait, err
		}
	}
	// Every event of a quota comes here. While all there is to do is to wait, the
	// caches may say so: when they know of more, they ask again.
	if cached, err := r.look(ctx, r.Client, quota); err == nil && r.left(cached) > 0 {
		return r.left(cached), nil
	}
	stored, err := r.look(ctx, r.Live, quota)
	if err != nil {
		return 0, err
	}
	stored.isFuture = stored.snapshot.State.Generation > stored.quota.Generation || r.isFuture(ctx, stored.snapshot.State, behind)
	wait, err := r.step(ctx, stored)
	if isConflict(err) {
		return lookSoon, nil // another client was first
	}
	return wait, err
}

func isConflict(err error) bool {
	return errors.Is(err, machine.ErrConflict) || apierrors.IsConflict(err)
}

// first opens a quota's first ledger without a live look: by the cache, the quota names none. Each write fails if it names one
// by now, or if another ledger is stored than this process knows. Of a quota that was deleted meanwhile, a sealed ledger is left
// until the cache shows that.
func (r *Recovery) first(ctx context.Context, quota *quotav1.ClusterResourceQuota) (time.Duration, error) {
	stored := found{quota: quota, snapshot: r.Group.Known(quota.Name)}
	switch known := stored.snapshot; {
	case known.Version.IsZero():
		return r.begin(ctx, stored)
	case known.State.Quota == quota.UID && !known.Edited && !known.State.Sealed.IsZero():
		stored.ledger = sealedLedger(stored)
		return r.unseal(ctx, stored)
	}
	return 0, machine.ErrConflict
}

// Forget forgets a quota that is gone.
func (r *Recovery) Forget(quota string) {
	r.seen.forget(quota)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.behind, quota)
}

// Sources returns the resources that the quota's ledger is counted from, by this process's memory or cache.
func (r *Recovery) Sources(ctx context.Context, quota *quotav1.ClusterResourceQuota) (sets.Set[schema.GroupResource], error) {
	known := r.Group.Current(quota.Name)
	if known.Quota == quota.UID {
		return known.Sources(), nil
	}
	cached, err := r.look(ctx, r.Client, quota)
	return cached.snapshot.State.Sources(), err
}

// isOpen reports whether the quota's machine knows an open ledger, and the cache has it,
// too. If the machine read it before the cache's first list, no event tells that it is gone.
func (r *Recovery) isOpen(ctx context.Context, quota *quotav1.ClusterResourceQuota) bool {
	known, cached := r.Group.Known(quota.Name), &quotav1.QuotaLedger{}
	return known.State.Quota == quota.UID && known.State.Sealed.IsZero() &&
		r.Client.Get(ctx, client.ObjectKeyFromObject(quota), cached) == nil && cached.UID == known.Version.UID
}

// ahead reports whether the ledger has a newer spec than the quota, or has counted versions that the watches haven't
// shown for so long that a live look must find whether they ever happened: of the resources that it returns.
func (r *Recovery) ahead(
	quota *quotav1.ClusterResourceQuota, counted map[schema.GroupResource]uint64,
) (behind []schema.GroupResource, ahead bool) {
	state, stored := r.Group.Current(quota.Name), r.Group.Known(quota.Name)
	for resource, version := range counted {
		if state.Counted[resource] > version {
			behind = append(behind, resource)
		}
	}
	if max(stored.State.Joined, stored.State.Asked) > stored.Version.ResourceVersion {
		behind = append(behind, ledger.Namespaces) // a ledger can only know of joins before it was written
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	since, known := r.behind[quota.Name]
	switch now := r.Clock.Now(); {
	case len(behind) == 0:
		delete(r.behind, quota.Name)
	case !known:
		r.behind[quota.Name] = now
	case now.Sub(since) >= behindFor:
		r.behind[quota.Name] = now
		return behind, true
	}
	return nil, state.Quota == quota.UID && state.Generation > quota.Generation
}

// Again returns after which time Ensure must be called again though nothing changes; zero if it needn't be.
func (r *Recovery) Again(quota string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.behind[quota]; known {
		return behindFor
	}
	return 0
}

// isFuture reports whether a ledger names a version of one of the resources that the API server has not come to: etcd
// was restored from a backup, and the ledger was written by a process that remembers the lost history. Each list began
// after the ledger was read.
func (r *Recovery) isFuture(ctx context.Context, state ledger.State, behind []schema.GroupResource) bool {
	for _, resource := range behind {
		version := state.Counted[resource]
		if resource == ledger.Namespaces {
			version = max(state.Members(), state.Asked)
		}
		now, err := r.now(ctx, resource)
		if err != nil {
			log.FromContext(ctx).Error(err, "Can't tell whether a ledger is of another history", "resource", resource.String())
		}
		if err == nil && now != 0 && now < version {
			return true
		}
	}
	return false
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
		stored.snapshot, err = r.Decode(stored.ledger)
	}
	return stored, err
}

func (r *Recovery) step(ctx context.Context, stored found) (time.Duration, error) {
	switch state := stored.snapshot.State; {
	case stored.ledger == nil:
		if stored.quota.Status.Ledger != "" {
			r.lost(ctx, stored.quota, outcomes.Deleted)
			_, err := r.create(ctx, stored.quota)
			return lookSoon, err
		}
		return r.begin(ctx, stored)
	case stored.snapshot.Edited:
		return lookSoon, r.discard(ctx, stored, outcomes.Edited)
	case state.Quota == stored.quota.UID && stored.isFuture:
		return lookSoon, r.discard(ctx, stored, outcomes.Restored)
	case state.Quota != stored.quota.UID:
		// It was a quota's that had the same name.
		return lookSoon, r.remove(ctx, stored.ledger)
	case state.Sealed.IsZero():
		r.Group.Saw(stored.quota.Name, stored.snapshot)
		return 0, nil
	default:
		return r.unseal(ctx, stored)
	}
}

func (r *Recovery) lost(ctx context.Context, quota *quotav1.ClusterResourceQuota, how outcomes.Loss) {
	log.FromContext(ctx).Info("Somebody other than the operator changed the ledger of a quota, or restored a backup. "+
		"Nothing is granted until everything that was in flight is counted", "how", how, "ledger", quota.Status.Ledger)
	r.Outcomes.Lost(quota.Name, how)
}

// begin makes a quota's first ledger, without a look in between: if another one was opened since the quota was read, the
// quota names that.
func (r *Recovery) begin(ctx context.Context, stored found) (time.Duration, error) {
	var err error
	if stored.snapshot, err = r.create(ctx, stored.quota); err != nil {
		return 0, err
	}
	stored.ledger = sealedLedger(stored)
	return r.unseal(ctx, stored)
}

// sealedLedger has the object's name and UID, all that unseal reads.
func sealedLedger(stored found) *quotav1.QuotaLedger {
	return &quotav1.QuotaLedger{ObjectMeta: metav1.ObjectMeta{Name: stored.quota.Name, UID: stored.snapshot.Version.UID}}
}

// create makes a ledger that is sealed.
func (r *Recovery) create(ctx context.Context, quota *quotav1.ClusterResourceQuota) (machine.Snapshot, error) {
	sealed := r.Clock.Now().Truncate(time.Second)
	made := machine.Snapshot{State: ledger.State{Basis: ledger.Basis{Quota: quota.UID}, Sealed: sealed}}
	var err error
	if made.Version, err = r.Group.Replace(ctx, quota.Name, machine.Version{}, made.State); err == nil {
		// Its predecessor was deleted before it was stored, and perhaps after the call began.
		r.seen.see(quota.Name, r.Clock.Now(), ledger.Seal(made.Version.UID))
	}
	return made, err
}

// discard puts a sealed ledger in place of an unusable one.
func (r *Recovery) discard(ctx context.Context, stored found, how outcomes.Loss) error {
	r.lost(ctx, stored.quota, how)
	if stored.quota.Status.Ledger == "" {
		// The status may have been edited, too. Once it names a ledger, the next one is sealed.
		if err := r.name(ctx, stored); err != nil {
			return err
		}
	}
	if err := r.remove(ctx, stored.ledger); err != nil {
		return err
	}
	_, err := r.create(ctx, stored.quota)
	return err
}

// remove deletes exactly the ledger that was read.
func (r *Recovery) remove(ctx context.Context, object *quotav1.QuotaLedger) error {
	err := r.Client.Delete(ctx, object, client.Preconditions{UID: &object.UID, ResourceVersion: &object.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting ledger %s: %w", object.Name, err)
	}
	return nil
}

// unseal opens a ledger once everything in flight is in it or stored.
func (r *Recovery) unseal(ctx context.Context, stored found) (time.Duration, error) {
	if stored.quota.Status.Ledger != stored.ledger.UID {
		if left := r.left(stored); left > 0 {
			return left, nil
		}
		var err error
		if stored.snapshot, err = r.fill(ctx, stored); err != nil {
			return 0, err
		}
		if err := r.name(ctx, stored); err != nil {
			return 0, err
		}
	}
	state := stored.snapshot.State
	state.Sealed = time.Time{}
	_, err := r.Group.Replace(ctx, stored.quota.Name, stored.snapshot.Version, state)
	return 0, err
}

// fill returns the sealed ledger with how far a count must have come.
//
// A fence in a lost ledger is lost, too. The edit that it was for has been stored or has
// failed by now. So the new ledger starts with the generation that is stored: no count for an
// older spec is settled in it, and no charge is judged by older limits. A fence that was set
// since is in this ledger, and stays.
func (r *Recovery) fill(ctx context.Context, stored found) (machine.Snapshot, error) {
	quota, state := stored.quota, stored.snapshot.State
	if quota.Status.Ledger == "" {
		return stored.snapshot, nil // nothing is in flight
	}
	newest, err := r.newest(ctx, quota)
	if err != nil {
		return machine.Snapshot{}, err
	}
	state.Used, state.Generation = nil, quota.Generation
	state.Counted, state.Unlisted, state.Forgotten = newest.Versions, newest.Unlisted, 0
	version, err := r.Group.Replace(ctx, quota.Name, stored.snapshot.Version, state)
	return machine.Snapshot{Version: version, State: state}, err
}

// name makes the quota's status, as it was read, name the ledger.
func (r *Recovery) name(ctx context.Context, stored found) error {
	named := stored.quota.DeepCopy()
	named.Status.Ledger = stored.ledger.UID
	if r.Begin != nil && len(named.Status.Conditions) == 0 {
		r.Begin(named, r.Clock.Now())
	}
	patch := client.MergeFromWithOptions(stored.quota, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, named, patch); err != nil {
		return fmt.Errorf("naming the ledger of quota %s: %w", named.Name, err)
	}
	return nil
}

// left is how long a sealed ledger stays so because only time can show the charges in flight; zero for a ledger that
// can be opened, and for none. It stays so for a reservation's life since this leader first saw it:
//
//   - It was made after the lost one had been deleted. Until then charges were granted by a write of
//     that, and from escrow that such a write had taken. A replica that hasn't noticed the loss grants from its
//     escrow for two more seconds.
//   - The API server gives up on a request 34 seconds after it began. A life is longer than both together.
func (r *Recovery) left(stored found) time.Duration {
	state, named := stored.snapshot.State, stored.quota.Status.Ledger
	if state.Sealed.IsZero() || named == "" || named == stored.ledger.UID {
		return 0
	}
	seal, now := ledger.Seal(stored.ledger.UID), r.Clock.Now()
	return r.seen.see(stored.quota.Name, now, seal).Left(now, seal, r.Life)
}
