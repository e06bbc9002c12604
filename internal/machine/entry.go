// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// entry is one thing to do in a batch: a charge or an edit.
type entry struct {
	id   RequestID
	kind kind
	// arrival is the number of a charge, in order of arrival.
	arrival int
	// charge is nil for an edit.
	charge *ledger.Charge
	// since is when the caller came, or when it last waited for something else than a ledger that fails.
	since time.Time
	// patience is until when a denial is withheld.
	patience time.Time
	// awaits is the deadline by which others return escrow; zero if the charge has never waited for that. awaitUntil
	// is the same while others hold some that it needs, and zero otherwise.
	awaits, awaitUntil time.Time
	change             func(*ledger.Draft)
	// releases is the reservation that the change releases; zero for other edits.
	releases ledger.Key
	// until is when an edit without a caller is given up; zero for never.
	until time.Time
	// doubtful: a write of it failed that may have happened.
	doubtful bool
	// parked: it was denied and has waited for room.
	parked bool
	// abandoned: the caller has gone, or was answered.
	abandoned bool

	// pending is the decision on the draft that is being written; nil for an edit that
	// found no ledger.
	pending ledger.Decision
}

// kind is the action of an entry.
type kind int

const (
	// charging: a charge is judged and reserved.
	charging kind = iota
	// probing: a charge is only judged.
	probing
	// editing: the ledger is changed.
	editing
	// proving: the ledger is written even if the edit changes nothing.
	proving
)

// apply runs the entry on the draft of base and keeps the decision until it is final.
// A denial by limits that are not those of the spec says nothing.
//
// An edit of a ledger that is void changes nothing: nothing may be written over
// such a ledger. The reservations that the edit would have released expire.
func (e *entry) apply(draft *ledger.Draft, base *Snapshot) {
	switch {
	case e.change != nil && base.void():
		e.pending = nil
	case e.change != nil:
		e.change(draft)
		e.pending = ledger.Granted{}
	case e.kind == probing:
		e.pending = draft.Judge(*e.charge)
	default:
		e.pending = draft.Reserve(*e.charge)
		if !e.granted() {
			// A write whose reply was lost may have reserved it before.
			draft.Release(e.charge.Reservation.Key())
		}
	}
	if denied, ok := e.pending.(ledger.Denied); ok && e.isOfOtherSpec(base.Spec) {
		e.pending = ledger.Undecided{Quota: denied.Quota, Reason: ledger.StaleLimits, Resources: denied.Resources()}
	}
}

func (e *entry) isOfOtherSpec(spec *Spec) bool {
	limits := e.charge.Limits
	return spec != nil && *spec != Spec{Quota: limits.Quota, Generation: limits.Generation}
}

// reserves reports whether the entry is a charge that is not only judged.
func (e *entry) reserves() bool { return e.kind == charging }

func (e *entry) denied() bool {
	_, denied := e.pending.(ledger.Denied)
	return denied
}

func (e *entry) granted() bool { return ledger.IsGranted(e.pending) }

// lacksRoom reports whether the entry is refused for want of room.
func (e *entry) lacksRoom() bool {
	_, withheld := e.pending.(ledger.Withheld)
	return withheld || e.denied()
}

// patient reports whether the entry is refused for want of room and can wait for some.
func (e *entry) patient(now time.Time) bool {
	return e.lacksRoom() && now.Before(e.deadline())
}

// deadline is when a charge that can't be granted is denied.
func (e *entry) deadline() time.Time {
	return later(e.patience, e.awaitUntil)
}

// hasCaller reports whether someone waits for the entry.
func (e *entry) hasCaller() bool { return e.id != 0 && !e.abandoned }

// renew has the callers of entries wait for triedFor again if the ledger fails: until now they waited for room, for escrow or
// for a write that succeeded.
func renew(entries []*entry, now time.Time) {
	for _, e := range entries {
		e.since = now
	}
}

// isOver reports whether the entry is no longer needed.
func (e *entry) isOver(now time.Time) bool {
	return e.abandoned || !e.until.IsZero() && now.After(e.until)
}
