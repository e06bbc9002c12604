// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

const (
	// lookupsAtOnce bounds the live looks for objects of reservations of one quota.
	lookupsAtOnce = 10
	// expireAgain is the time after which the controller looks again for a reservation that stays though its life has
	// ended.
	expireAgain = time.Second
)

// expire removes the reservations whose life has ended and whose objects a live
// look doesn't find, and the fence of an edit that was never stored. It returns how long
// until the next one ends; zero for none.
func (c *Controller) expire(ctx context.Context, quota string, known sighted) (time.Duration, error) {
	// A look that fails keeps its reservation alone.
	over, next := expired(known, known.State.Reservations, c.Life)
	cleared, later := expired(known, known.State.Suspects, suspectFor)
	dropped, failed := lookEach(over, func(reservation ledger.Reservation) (bool, error) {
		return c.awaited(ctx, quota, known.State, reservation)
	})
	vain, stored, left, err := c.isVain(ctx, quota, known)
	failed = errors.Join(failed, err)
	if next = earlier(earlier(next, later), left); len(dropped) < len(over) {
		next = earlier(next, expireAgain)
	}
	var hard corev1.ResourceList
	c.Count.Read(quota, func(view counting.View) { hard = enforced(view.Target().Quota) })
	if len(dropped)+len(cleared) > 0 || vain {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		failed = errors.Join(failed, c.Group.Edit(ctx, quota, func(draft *ledger.Draft) {
			for _, suspect := range cleared { // first: the namespace may become one again
				draft.Acquit(suspect)
			}
			draft.DropAll(dropped, hard, c.MaxDoubtful, known.now.Add(suspectFor).Truncate(time.Second))
			if vain {
				draft.RemoveFence(known.State.Fence, stored)
			}
		}))
	}
	return next, failed
}

// enforced returns the limits of a quota for which requests are refused.
func enforced(quota evaluation.Quota) corev1.ResourceList {
	if quota.Advisory {
		return nil
	}
	return quota.Spec.Hard
}

// lookEach returns the keys of the reservations of which a look doesn't find the object. A look that fails
// says nothing of the others. If one isn't answered in time, no other of its resource begins.
func lookEach(reservations []ledger.Reservation, finds func(ledger.Reservation) (bool, error)) ([]ledger.Key, error) {
	var looks errgroup.Group
	looks.SetLimit(lookupsAtOnce)
	var mu sync.Mutex // guards the fields below
	var missing []ledger.Key
	var failures []error
	hanging := map[schema.GroupResource]bool{}
	for _, reservation := range reservations {
		looks.Go(func() error {
			resource := reservation.Resource.GroupResource()
			mu.Lock()
			skip := hanging[resource]
			mu.Unlock()
			if skip {
				return nil
			}
			found, err := finds(reservation)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				failures = append(failures, err)
				hanging[resource] = hanging[resource] || errors.Is(err, context.DeadlineExceeded)
			case !found:
				missing = append(missing, reservation.Key())
			}
			return nil
		})
	}
	_ = looks.Wait() // each failure is kept
	return missing, errors.Join(failures...)
}

// awaited reports whether an expired reservation must be kept because its object
// is there and counting has yet to see it.
func (c *Controller) awaited(
	ctx context.Context, quota string, state ledger.State, reservation ledger.Reservation,
) (bool, error) {
	awaits := true
	c.Count.Read(quota, func(view counting.View) { awaits = counting.Awaits(view, state, reservation) })
	if !awaits {
		return false, nil // the objects there are never going to be counted
	}
	return c.objects.There(ctx, reservation)
}

// isVain reports whether the fence is for a spec that can't be stored any more: the API
// server has given up on the edit, and the spec that it has stored is of an older generation. It returns after which
// time to look again; zero for never.
func (c *Controller) isVain(ctx context.Context, quota string, known sighted) (vain bool, stored int64, again time.Duration, err error) {
	fence := known.State.Fence
	if fence.Generation == 0 {
		return false, 0, 0, nil
	}
	if left := known.ages.Left(known.now, fence.Life(known.Version.UID), c.Life); left > 0 {
		return false, 0, left, nil
	}
	stored, err = c.objects.Generation(ctx, quota)
	if err != nil {
		return false, 0, expireAgain, fmt.Errorf("looking whether a limit was lowered: %w", err)
	}
	return stored < fence.Generation, stored, expireAgain, nil
}
