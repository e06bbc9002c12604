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
	"time"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// Change is an edit of the ledger that nobody judges, such as a settle. It may
// run several times, each time on a newer state.
type Change func(*ledger.Draft)

// entry is one thing to do in a batch: a charge or a change.
//
// Invariant: outcome is sent exactly once, by the committer; done is closed
// after it.
type entry struct {
	// ctx is the waiter's, or the bound of an unattended change.
	ctx context.Context //nolint:containedctx // the queue outlives the call, and has to know when the caller gave up
	// charge is nil for a change.
	charge *Charge
	// probe: the charge is judged and not reserved.
	probe bool
	// patience is until when a denial is withheld.
	patience time.Time
	change   Change
	// canWait tells whether nobody waits for what the change does to the ledger;
	// nil for what can't.
	canWait func(ledger.State) bool
	// lazy is what canWait said last. Guarded by the committer's mu.
	lazy bool

	// pending is the decision on the draft that is being written.
	pending ledger.Decision

	done     chan struct{}
	decision ledger.Decision
	err      error
}

func newCharge(ctx context.Context, charge Charge, patience time.Time) *entry {
	return &entry{ctx: ctx, charge: &charge, patience: patience, done: make(chan struct{})}
}

func newProbe(ctx context.Context, charge Charge, patience time.Time) *entry {
	return &entry{ctx: ctx, charge: &charge, patience: patience, probe: true, done: make(chan struct{})}
}

func newChange(ctx context.Context, change Change) *entry {
	return &entry{ctx: ctx, change: change, done: make(chan struct{})}
}

// apply runs the entry on the draft of base and keeps the decision until it is
// final. A denial by limits that are not those of the spec says nothing.
//
// A change to a ledger that is void is lost. A settle would make it one to grant by,
// without what is in flight. Who counts settles again once there is a ledger, and
// what was to be released expires.
func (e *entry) apply(draft *ledger.Draft, base *Snapshot) {
	spec := base.Spec
	defer func() {
		denied, is := e.pending.(ledger.Denied)
		if is && spec != nil && *spec != (Spec{Quota: e.charge.Limits.Quota, Generation: e.charge.Limits.Generation}) {
			e.pending = ledger.Undecided{Quota: denied.Quota, Reason: ledger.StaleLimits, Resources: denied.Resources()}
		}
	}()
	switch {
	case e.change != nil:
		if !base.void() {
			e.change(draft)
		}
		e.pending = ledger.Granted{}
	case e.probe:
		e.pending = draft.Judge(e.charge.Limits, e.charge.Reservation)
	default:
		e.pending = draft.Reserve(e.charge.Limits, e.charge.Reservation)
		if !e.granted() {
			// A write whose reply was lost may have reserved it before.
			draft.Release(e.charge.Reservation.Key())
		}
	}
}

func (e *entry) granted() bool {
	_, granted := e.pending.(ledger.Granted)
	return granted
}

// patient tells whether the entry is denied, and can wait for room.
func (e *entry) patient(now time.Time) bool {
	_, denied := e.pending.(ledger.Denied)
	return denied && now.Before(e.patience)
}

// finish makes the pending decision final.
func (e *entry) finish() {
	e.decision = e.pending
	close(e.done)
}

func (e *entry) fail(err error) {
	e.err = err
	close(e.done)
}

// detached gives work that outlives its caller's context a bound of its own.
func detached(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), timeout)
}
