// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"time"

	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// Store keeps one ledger a quota. Both calls obey their context.
type Store interface {
	// Load reads the newest ledger and, if asked, the version of the quota's spec: never
	// any that is older than the call. A quota without a ledger has no Version and the
	// zero State. It returns machine.ErrUnreadable, wrapped, of a ledger that this
	// process can't understand.
	Load(ctx context.Context, quota string, load machine.Load) (machine.Snapshot, error)
	// Swap replaces the ledger at version previous, and returns the version
	// written. If another version is stored it returns machine.ErrConflict, wrapped or
	// not. After any other error the write may or may not have happened.
	Swap(ctx context.Context, quota string, previous machine.Version, next ledger.State) (machine.Version, error)
}

// Counter counts the use of quotas. Only the leader's does.
type Counter interface {
	// Observe returns one instant of a quota's count, and which of the reservations it
	// includes; nil if the quota isn't counted here.
	Observe(quota string, known ledger.State) *ledger.Observation
}

// Observer receives events for metrics. Calls must not block.
type Observer interface {
	// Committed: a batch of so many charges and edits was written.
	Committed(quota string, batch int, took time.Duration)
	// Ended: reservations ended with the write.
	Ended(quota string, ends ledger.Ends)
	// Conflicted: another writer was first; the batch is judged again.
	Conflicted(quota string)
	// Failed: the store failed; the batch is tried again while anyone waits.
	Failed(quota string, err error)
	// Impossible: an event came that cannot have happened, and was ignored.
	Impossible(quota string, err error)
}

// Trouble is that a ledger can't be read or written, or does not take the count.
type Trouble struct {
	// Since is when the first call failed of a series of failed calls without a
	// success.
	Since time.Time
	// Err is why the last one did.
	Err error
	// Untaken: the ledger can be read and written, and has not taken the count since then. Err is nil if no cause is known.
	Untaken bool
	// writing: a write was among them, so that a read that succeeds doesn't end it.
	writing bool
}

// checkEvery is the time between calls that find out whether a ledger can be read
// and written again. It is shorter than the time that controllers/status waits
// before it reports trouble. So if the API server rejected a single request, the
// trouble has ended before.
const checkEvery = 3 * time.Second

// Options bound the work of a Group. All are required.
type Options struct {
	machine.Options
	// CallTimeout bounds each call of the Store.
	CallTimeout time.Duration
	// EditTimeout bounds how long an edit without a caller, such as a release, is
	// tried.
	EditTimeout time.Duration
}

// Clock is the time, and timers. k8s.io/utils/clock.RealClock is one.
type Clock = clock.WithDelayedExecution
