// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"time"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// Event is an input of Step.
type Event interface{ event() }

// RequestID identifies a charge or an edit whose caller waits. Zero is for an
// edit without a waiting caller and, in a Cancel, for a charge that was answered.
type RequestID uint64

// Charge asks for a decision, which an Answer gives.
type Charge struct {
	ID     RequestID
	Charge ledger.Charge
	// Probe: the charge is judged and not reserved.
	Probe bool
	// Patience is until when a denial is withheld.
	Patience time.Time
}

// Edit changes the ledger without being judged, as when an expired reservation is
// dropped. The change may run several times, each time on a newer state. If there is no
// ledger, or an edited one, nothing is changed, and the answer is ErrNoLedger.
type Edit struct {
	ID     RequestID
	Change func(*ledger.Draft)
	// Until is when an edit without a waiting caller is given up.
	Until time.Time
	// Written: the ledger is written even if nothing changes, which proves that it can be.
	Written bool
}

// Cancel says that the caller of a charge or an edit has gone, or that a charge
// that was granted isn't needed. The reservation for it, if there is any, is
// released.
type Cancel struct {
	// ID is zero for a charge that was answered.
	ID RequestID
	// Reserved is the charge's reservation; zero for a probe or an edit, which reserve
	// nothing.
	Reserved ledger.Key
	// Until is when the release is given up.
	Until time.Time
}

// Counted says that the count has changed, so that there may be something to settle.
type Counted struct {
	// Freed: less may be used, and charges may wait for that.
	Freed bool
}

// Observed replies to an Observe.
type Observed struct {
	// Observation is of the instant of the reply; nil if this process doesn't count
	// the quota.
	Observation *ledger.Observation
}

// Seen says that a watch has shown a stored ledger.
type Seen struct{ Snapshot Snapshot }

// Gone says that a watch has shown that there is no ledger.
type Gone struct{}

// Replaced says that this process stored a ledger by another way than a Swap.
type Replaced struct{ Snapshot Snapshot }

// Loaded replies to a Load.
type Loaded struct {
	Snapshot Snapshot
	// Err is why nothing was read. After ErrUnreadable everybody in the batch is
	// answered; after any other error it is tried again, until a caller has waited for three seconds.
	Err error
}

// Swapped replies to a Swap.
type Swapped struct {
	// Version is the version that was written.
	Version Version
	// Took is how long the write took.
	Took time.Duration
	// Err is nil if the write happened, ErrConflict if the stored ledger was at another
	// version, ErrRejected if it can't be stored. After any other error the write may or may
	// not have happened.
	Err error
}

// Return says that the process is about to stop: its escrow is given back, and no more is taken.
type Return struct{}

// Tick says that time has passed.
type Tick struct{}

// End says that the process stops: everybody is answered, and nothing more is begun.
type End struct{}

func (Charge) event()   {}
func (Edit) event()     {}
func (Cancel) event()   {}
func (Counted) event()  {}
func (Observed) event() {}
func (Seen) event()     {}
func (Gone) event()     {}
func (Replaced) event() {}
func (Loaded) event()   {}
func (Swapped) event()  {}
func (Return) event()   {}
func (Tick) event()     {}
func (End) event()      {}

// Effect is an action that Step asks for.
type Effect interface{ effect() }

// Load asks for a live read of the ledger. The reply is Loaded.
type Load struct {
	// Spec: the version of the quota's spec is read, too.
	Spec bool
}

// Swap asks for a compare-and-swap of the ledger. The reply is Swapped.
type Swap struct {
	Previous Version
	Next     ledger.State
	// Recalls: it only asks for the escrows of others. The count is settled
	// later.
	Recalls bool
}

// Observe asks for the count that a ledger can settle by, and which of its reservations the
// count includes. The reply is Observed.
type Observe struct {
	Ledger ledger.State
}

// Answer tells the caller of a charge or an edit how it ended.
type Answer struct {
	ID RequestID
	// Decision on a charge; Granted for an edit that was written. Nil with Err.
	Decision ledger.Decision
	// Err is why there is no decision.
	Err error
}

// WakeAt asks for a Tick at that time, unless another event comes before.
type WakeAt struct{ Time time.Time }

// Committed reports a write, for metrics.
type Committed struct {
	// Batch is how many charges and edits were written.
	Batch int
	Took  time.Duration
	Ends  ledger.Ends
}

// Conflicted reports that another replica wrote first.
type Conflicted struct{}

// Failed reports that a call failed. It is tried again, except after ErrUnreadable.
type Failed struct{ Err error }

// Impossible reports an event that cannot have happened. It changed nothing.
type Impossible struct{ Err error }

// Untaken reports that the ledger has not taken the count for five seconds: deletions make no room, and charges may be
// undecided. Once it has taken the count, Since is zero.
type Untaken struct {
	Since time.Time
	// Err is why; nil if no cause is known.
	Err error
}

func (Load) effect()       {}
func (Swap) effect()       {}
func (Observe) effect()    {}
func (Answer) effect()     {}
func (WakeAt) effect()     {}
func (Committed) effect()  {}
func (Conflicted) effect() {}
func (Failed) effect()     {}
func (Impossible) effect() {}
func (Untaken) effect()    {}

var (
	// ErrBusy is the answer when too many charges wait for one quota already.
	ErrBusy = errors.New("too many requests wait for this quota")
	// ErrEnded is the answer once the process stops.
	ErrEnded = errors.New("the operator is stopping")
	// ErrNoLedger is the answer to an edit if there is no ledger, or if it was
	// edited by anyone but the operator.
	ErrNoLedger = errors.New("there is no ledger that could be changed")
	// ErrConflict says that the ledger is no longer at the version that was read.
	ErrConflict = errors.New("the ledger has changed since it was read")
	// ErrRejected says that the API server won't store a ledger because of its
	// content.
	ErrRejected = errors.New("the ledger can't be stored so")
	// ErrStore is the answer to a caller that has waited for three seconds when a call fails.
	ErrStore = errors.New("its ledger can't be read or written")
	// ErrUnreadable says that this process can't understand the ledger, and never
	// will: callers needn't wait.
	ErrUnreadable = errors.New("the ledger can't be understood")

	// ErrBackwards says that the store went back: it was restored from a backup.
	ErrBackwards = errors.New("the ledger went back to an older version")

	errUnasked  = errors.New("a reply came that nothing had asked for")
	errStranger = errors.New("a count came for another quota")
)
