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

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/sharedquota/shared-quota-operator/internal/balance"
	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// lookupsAtOnce bounds the live looks for objects of reservations of one quota.
const lookupsAtOnce = 10

// expire removes the reservations whose life has ended and whose objects a live
// look doesn't find, and the fence of an edit that was never stored. It returns how long
// until the next one ends; zero for none.
func (c *Controller) expire(ctx context.Context, quota string) (time.Duration, error) {
	state, now := c.Group.Current(quota), c.Clock.Now()
	dropped, failed := c.expired(ctx, quota, state, now)
	vain, stored, err := c.isVain(ctx, quota, state.Fence, now)
	failed = errors.Join(failed, err)
	var hard corev1.ResourceList
	c.Count.Read(quota, func(view counting.View) { hard = enforced(view.Target().Quota) })
	if len(dropped) > 0 || vain {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		failed = errors.Join(failed, c.Group.Edit(ctx, quota, func(draft *ledger.Draft) {
			draft.DropAll(dropped, hard, c.MaxDoubtful, now.Add(suspectFor).Truncate(time.Second))
			if vain {
				draft.RemoveFence(state.Fence, stored)
			}
		}))
	}
	return untilNextExpiry(c.Group.Current(quota), now), failed
}

// enforced returns the limits of a quota for which requests are refused.
func enforced(quota evaluation.Quota) corev1.ResourceList {
	hard := maps.Clone(quota.Spec.Hard)
	maps.DeleteFunc(hard, func(name corev1.ResourceName, _ resource.Quantity) bool { return quota.Advisory[name] })
	return hard
}

// expired returns the reservations that nothing is awaited for any more. A look that
// fails keeps its reservation alone.
func (c *Controller) expired(ctx context.Context, quota string, state ledger.State, now time.Time) ([]ledger.Reservation, error) {
	_, expired := expiredEscrows(state, now)
	return lookEach(expired, func(reservation ledger.Reservation) (bool, error) {
		return c.awaited(ctx, quota, state, reservation)
	})
}

// lookEach returns the reservations of which a look doesn't find the object. A look that fails
// says nothing of the others.
func lookEach(reservations []ledger.Reservation, finds func(ledger.Reservation) (bool, error)) ([]ledger.Reservation, error) {
	var looks errgroup.Group
	looks.SetLimit(lookupsAtOnce)
	var mu sync.Mutex // guards what follows
	var missing []ledger.Reservation
	var failures []error
	for _, reservation := range reservations {
		looks.Go(func() error {
			found, err := finds(reservation)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				failures = append(failures, err)
			case !found:
				missing = append(missing, reservation)
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
	c.Count.Read(quota, func(view counting.View) { awaits = balance.Awaits(view, state, reservation) })
	if !awaits {
		return false, nil // what lives there is never going to be counted
	}
	return c.Objects.There(ctx, reservation)
}

// isVain reports whether a fence is for a spec that can't be stored any more: the API
// server has given up on the edit, and the spec that it has stored is of an older generation.
func (c *Controller) isVain(
	ctx context.Context, quota string, fence ledger.Fence, now time.Time,
) (vain bool, stored int64, err error) {
	if fence.Generation == 0 || now.Before(fence.Until) {
		return false, 0, nil
	}
	stored, err = c.Objects.Generation(ctx, quota)
	if err != nil {
		return false, 0, fmt.Errorf("looking whether a limit was lowered: %w", err)
	}
	return stored < fence.Generation, stored, nil
}

func untilNextExpiry(state ledger.State, now time.Time) time.Duration {
	next := time.Duration(0)
	// A second more, for expiry is in whole seconds.
	if state.Fence.Generation != 0 {
		next = max(state.Fence.Until.Sub(now), 0) + time.Second
	}
	for _, reservation := range state.Reservations {
		left := max(reservation.Expiry.Sub(now), 0) + time.Second
		next = earlier(next, left)
	}
	return next
}
