// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

const (
	// doubtAfter is for how long a leader has known a reservation before it looks for the object. Nearly all are
	// settled within a second.
	doubtAfter = 3 * time.Second
	// doubtsAtOnce bounds how many are looked for in one go; the others follow after doubtAgain.
	doubtsAtOnce = 100
	doubtAgain   = time.Second
	// suspectFor is for how long after that a namespace may hold less: otherwise it could take all
	// that is free once a minute.
	suspectFor = 10 * time.Minute
)

// doubt marks, in a quota's ledger, the reservations whose objects should have been there for a while, and aren't:
// their requests seem to have failed. ledger.Withheld bounds the amounts that one namespace holds so. If such a request
// is only slow, its object settles the reservation as any other. It returns how long until the next reservation is old
// enough; zero for none.
func (c *Controller) doubt(ctx context.Context, quota string, known sighted) (time.Duration, error) {
	old, next := ledger.Old(known.ages, known.now, known.State.Reservations, func(reservation ledger.Reservation) (time.Duration, bool) {
		expired := known.ages.Left(known.now, reservation.Life(), c.Life) <= 0
		return doubtAfter, !expired && !reservation.Doubtful
	})
	if len(old) == 0 {
		return next, nil
	}
	old = c.unseen(quota, old)
	old = old[:min(len(old), doubtsAtOnce)]
	missing, failed := lookEach(old, func(reservation ledger.Reservation) (bool, error) {
		return c.objects.There(ctx, reservation)
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

// unseen returns the reservations that the count doesn't include, though their resource is counted: the others are about to be
// settled. A new leader, which counts for seconds, looked two or three times for each object that was created before.
func (c *Controller) unseen(quota string, old []ledger.Reservation) []ledger.Reservation {
	c.Count.Read(quota, func(view counting.View) {
		count := counting.ObservationOf(view)
		old = slices.DeleteFunc(old, func(reservation ledger.Reservation) bool {
			_, counted := count.Counted[reservation.Resource.GroupResource()]
			return !counted || count.Seen(reservation)
		})
	})
	return old
}
