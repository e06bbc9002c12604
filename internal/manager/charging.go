// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/sharedquota/shared-quota-operator/internal/apiserver"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/metrics"
)

// drainTimeout bounds the writes of ledgers after the webhooks' last answer.
const drainTimeout = 2 * time.Second

// escrowLife is how long a replica grants from an escrow.
const escrowLife = 2 * time.Second

// driverOptions sets how charges are written, and how much this replica grants
// without a write.
func driverOptions(f flags, replica string) driver.Options {
	// A tenth more, though clocks that count seconds differ by far less.
	escrow := machine.EscrowOptions{Recall: escrowLife + escrowLife/10}
	if f.reservations.escrow {
		escrow = machine.EscrowOptions{
			Holder: replica, UID: uuid.NewUUID(), Life: escrowLife, Recall: escrow.Recall,
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

// drain writes the last requests' changes, such as the release of charges whose
// callers have gone.
func drain(ctx context.Context, group *driver.Group) {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	group.Drain(ctx)
}

// proved is a store of ledgers that is used only while the API server is known to have the history that this
// process remembers. A write that was under way when that became doubtful is answered once it is certain again.
type proved struct {
	driver.Store
	contact *apiserver.Contact
	history *apiserver.History
}

// Load implements driver.Store.
func (p proved) Load(ctx context.Context, quota string, load machine.Load) (machine.Snapshot, error) {
	if err := p.contact.Await(ctx); err != nil {
		return machine.Snapshot{}, err
	}
	loaded, err := p.Store.Load(ctx, quota, load)
	p.history.Saw(loaded.Version.ResourceVersion)
	return loaded, err
}

// Swap implements driver.Store.
func (p proved) Swap(ctx context.Context, quota string, previous machine.Version, next ledger.State) (machine.Version, error) {
	if err := p.contact.Await(ctx); err != nil {
		return machine.Version{}, err
	}
	version, err := p.Store.Swap(ctx, quota, previous, next)
	if err == nil {
		err = p.contact.Await(ctx)
	}
	p.history.Saw(version.ResourceVersion)
	return version, err
}

// observing counts the events of ledgers, and logs impossible ones. It ends the process if the store went back.
type observing struct {
	*metrics.Metrics
	history *apiserver.History
}

// Impossible implements driver.Observer.
func (o observing) Impossible(quota string, err error) {
	if errors.Is(err, machine.ErrBackwards) {
		_ = o.history.End(fmt.Errorf("quota %s: %w", quota, err))
	}
	o.Metrics.Impossible(quota, err)
	ctrl.Log.WithName("ledgers").Error(err, "Ignored an event that cannot happen", "quota", quota)
}
