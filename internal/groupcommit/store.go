/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package groupcommit

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// ErrConflict is what a Store's Swap returns, wrapped or not, when the ledger
// is no longer at the version that was read.
var ErrConflict = errors.New("the ledger has changed since it was read")

// ErrUnreadable is what a Store's Load returns, wrapped, of a ledger that this process
// can't understand, and won't: nobody needs to wait for it.
var ErrUnreadable = errors.New("the ledger can't be understood")

// Snapshot is a ledger as it was stored at one version.
type Snapshot struct {
	// Version is opaque to this package; empty when no ledger is stored.
	Version string
	State   ledger.State
	// Edited: somebody else than a Store has written the ledger, so that nobody
	// knows what is in flight. The State is zero.
	Edited bool
	// Spec is the quota's own version when the ledger was loaded; nil where nobody
	// looked, as for a ledger that was seen in a watch.
	Spec *Spec
}

// void tells whether there is no ledger to go by. By the zero State every charge
// is undecided, and nothing may be written over it: that would be a ledger without
// what is in flight.
func (s Snapshot) void() bool { return s.Version == "" || s.Edited }

// Spec is a version of a quota's spec; zero where the quota is gone.
type Spec struct {
	Quota      types.UID
	Generation int64
}

// Store keeps one ledger a quota. Both calls obey their context.
type Store interface {
	// Load reads the newest ledger and the version of the quota's spec: never any
	// that is older than the call. A quota without a ledger has no Version and the
	// zero State.
	Load(ctx context.Context, quota string) (Snapshot, error)
	// Swap replaces the ledger at version previous, and returns the version
	// written. Any other version stored is an ErrConflict. After any other
	// error the write may or may not have happened.
	Swap(ctx context.Context, quota, previous string, next ledger.State) (string, error)
	// Newer tells whether version a was written after version b.
	Newer(a, b string) bool
}

// Observer is told what happens, for metrics. Calls must not block.
type Observer interface {
	// Committed: a batch of so many charges and changes was written.
	Committed(quota string, batch int, took time.Duration)
	// Ended: reservations ended with what was written.
	Ended(quota string, ends ledger.Ends)
	// Conflicted: another writer was first; the batch is judged again.
	Conflicted(quota string)
	// Failed: the store failed; the batch is tried again while anyone waits.
	Failed(quota string, err error)
}

// Options bound the work of a Group. All are required.
type Options struct {
	// Pace is the time between two batches under load. A batch is due sooner
	// when as many charges wait as the last one had.
	Pace time.Duration
	// PaceEach is the least time between two batches for each charge of the
	// first one, up to half the Pace.
	PaceEach time.Duration
	// Patience is how long at most a charge that doesn't fit waits for room before
	// it is denied: what has just been deleted takes a moment to be counted.
	Patience time.Duration
	// CallTimeout bounds each call of the Store.
	CallTimeout time.Duration
	// ChangeTimeout bounds how long a change without a waiter, such as a
	// release, is retried.
	ChangeTimeout time.Duration
	// MaxWaiting bounds the charges that wait for one quota.
	MaxWaiting int
}

// Charge asks for a reservation within a quota's limits.
type Charge struct {
	Limits      ledger.Limits
	Reservation ledger.Reservation
	Knowledge   ledger.Knowledge
}
