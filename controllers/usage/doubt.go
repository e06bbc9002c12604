// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

const (
	// doubtAfter is how old a reservation is before its object is looked for. Nearly all are
	// settled within a second.
	doubtAfter = 3 * time.Second
	// doubtsAtOnce bounds how many are looked for in one go; the others follow after doubtAgain.
	doubtsAtOnce = 100
	doubtAgain   = time.Second
	// suspectFor is for how long after that a namespace may hold less: otherwise it could take all
	// that is free once a minute.
	suspectFor = 10 * time.Minute
)

// doubt marks, in a quota's ledger, the reservations whose objects should have been there for a
// while, and aren't: their requests seem to have failed. What one namespace holds so is bounded by
// ledger.Withheld. If such a request is only slow, its object settles the reservation as any
// other. It returns how long until the next reservation is old enough; zero for none.
func (c *Controller) doubt(ctx context.Context, quota string) (time.Duration, error) {
	old, next := c.old(c.Group.Current(quota), c.Clock.Now())
	if len(old) == 0 {
		return next, nil
	}
	missing, failed := lookEach(old, func(reservation ledger.Reservation) (bool, error) {
		return c.Objects.There(ctx, reservation)
	})
	if len(missing) > 0 {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		failed = errors.Join(failed, c.Group.Edit(ctx, quota, func(draft *ledger.Draft) {
			for _, reservation := range missing {
				draft.Doubt(reservation)
			}
		}))
	}
	return doubtAgain, failed
}

// old returns the oldest reservations that must be looked for, and how long until the next one
// is; zero for none.
func (c *Controller) old(state ledger.State, now time.Time) (old []ledger.Reservation, next time.Duration) {
	for _, reservation := range state.Reservations {
		left := reservation.Expiry.Add(doubtAfter - c.Life).Sub(now)
		switch {
		case reservation.Doubtful || reservation.IsEscrow() || reservation.Expiry.Before(now):
		case left <= 0:
			old = append(old, reservation)
		default:
			next = earlier(next, left)
		}
	}
	slices.SortFunc(old, func(a, b ledger.Reservation) int {
		return cmp.Or(a.Expiry.Compare(b.Expiry), cmp.Compare(a.UID, b.UID))
	})
	return old[:min(len(old), doubtsAtOnce)], next
}
