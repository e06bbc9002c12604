// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/metrics"
)

// drainTimeout bounds the writes of ledgers after the webhooks' last answer.
const drainTimeout = 2 * time.Second

// escrowLife is how long a replica grants from an escrow.
const escrowLife = 2 * time.Second

// driverOptions say how charges are written, and what this replica grants without a write.
func driverOptions(f flags, replica string) driver.Options {
	// A tenth more, though clocks that count seconds differ by far less.
	escrow := machine.EscrowOptions{Recall: escrowLife + escrowLife/10}
	if f.reservations.escrow {
		escrow = machine.EscrowOptions{
			Holder: replica, UID: uuid.NewUUID(), Life: escrowLife, Recall: escrow.Recall, Linger: f.reservations.life,
			Every: time.Second, Busy: 3, Parts: 4,
		}
	}
	return driver.Options{
		Options: machine.Options{
			Pace: 40 * time.Millisecond, PaceEach: 2 * time.Millisecond, Patience: 150 * time.Millisecond, MaxWaiting: 10000,
			Escrow: escrow,
		},
		CallTimeout: 2 * time.Second, EditTimeout: 30 * time.Second,
	}
}

// drain writes what the last requests left, such as the release of what their callers
// don't need any more.
func drain(ctx context.Context, group *driver.Group) {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	group.Drain(ctx)
}

// observing counts what happens to ledgers, and logs what cannot have happened.
type observing struct{ *metrics.Metrics }

// Impossible implements driver.Observer.
func (o observing) Impossible(quota string, err error) {
	o.Metrics.Impossible(quota, err)
	ctrl.Log.WithName("ledgers").Error(err, "Ignored an event that cannot happen", "quota", quota)
}
