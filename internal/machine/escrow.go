// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// EscrowOptions bound the grants that a Machine makes without a write. Without a Holder it takes no escrow, and asks
// others for theirs.
type EscrowOptions struct {
	// Holder is this process, for people; UID is its own, and no other's.
	Holder string
	UID    types.UID
	// Life is how long is granted from an escrow, from when the write began that took it.
	Life time.Duration
	// Recall is how long the holder of another escrow is waited for, from when it is known that the ledger
	// asks for it back. It is longer than Life: then nothing is granted from it any more.
	Recall time.Duration
	// Every is the time between two writes that record grants.
	Every time.Duration
	// Busy is how many charges in that time make an escrow worth a write.
	Busy int
	// Parts: all escrows together hold at most one part in so many of the free
	// amounts.
	Parts int64
}

// Grants that are not recorded may take one part in so many of the bytes that the known ledger leaves free below
// ledger.MaxBytes, and at least one part in so many of ledger.MaxBytes. Even if another replica fills the ledger meanwhile, it is at
// most half as large again once four more have recorded theirs: etcd takes it. If it didn't, the room would stay reserved until
// enough is settled.
const (
	unrecordedOfFree = 8
	unrecordedOfAll  = 16
)

// renewals is how many times at most an escrow is renewed in the time of EscrowOptions.Every, because it runs low.
const renewals = 4

// escrow has the room that the machine grants from without a write.
type escrow struct {
	options EscrowOptions
	// key is of the escrow that is held, or taken next.
	key ledger.EscrowKey
	// granted has the grants from it that aren't recorded yet, as far as is
	// known.
	granted []ledger.Reservation
	// bytes is the size of that, and most how large that may become.
	bytes, most int
	// taken are the amounts that were taken last, and low is whether less than half of one is left.
	taken corev1.ResourceList
	low   bool
	// until is when nothing more is granted.
	until time.Time
	// written is when the last write that recorded grants began.
	written time.Time
	// notBefore is when the next escrow may be taken, and number is the number of the last attempt.
	notBefore time.Time
	number    int
	// local is the known ledger with the grants since; nil if it must be made. It is of version localOf.
	local   *ledger.Draft
	localOf Version
	// flight is the change of escrow in the write under way; nil if there is
	// none.
	flight *flight
	// limits and expiry are those of the newest charge that was granted.
	limits ledger.Limits
	expiry time.Time
	demand ledger.Demand
	// tried is when the last batch began that was to record, unless it did.
	tried time.Time
	// recalls are the escrows of others that are asked back: since when that is known.
	recalls ledger.Ages
}

// flight is a write that records grants and takes the next escrow.
type flight struct {
	recorded map[ledger.Key]bool
	// next is the escrow that is taken; nil for none.
	next         *ledger.Escrow
	began, until time.Time
}

func newEscrow(options EscrowOptions) escrow {
	return escrow{
		options: options, key: ledger.EscrowKey{Process: options.UID, Number: 1}, recalls: ledger.Ages{},
		most: ledger.MaxBytes / unrecordedOfAll,
	}
}

func (e *escrow) isOff() bool { return e.options.UID == "" }

// isValid reports whether time is left. The clocks on the wall and in the process must both say so: the
// one may be set back, and the other may stand still while a machine sleeps.
func (e *escrow) isValid(now time.Time) bool {
	return now.Before(e.until) && now.Round(0).Before(e.until.Round(0))
}

// spend grants a charge from the escrow, if there is enough, and reports whether it did.
func (m *Machine) spend(id RequestID, charge ledger.Charge, probe bool) bool {
	e := &m.escrow
	if e.isOff() || m.life != working || m.known.doubt != none || !m.known.usable() || !e.isValid(m.now) || e.isFull() {
		return false
	}
	if m.isReleasing(charge.Reservation.Key()) {
		return false
	}
	e.localise(m.known.snapshot)
	decision, ok := e.local.Spend(e.key, charge, probe)
	if !ok {
		return false
	}
	if !probe {
		granted := charge.Granted()
		e.granted = append(e.granted, granted)
		e.bytes += granted.Size()
		e.low = e.low || e.local.HoldsLessThanHalf(e.key, e.taken)
		e.note(m.now, charge)
	}
	m.emit(Answer{ID: id, Decision: decision})
	return true
}

// isReleasing reports whether a release of the reservation waits for a write. A request that is charged again has the same key
// as before. It must be charged behind the release, which would take the new grant back otherwise.
func (m *Machine) isReleasing(key ledger.Key) bool {
	releases := func(waits *entry) bool { return waits.releases == key }
	return len(m.queue) > m.charges && slices.ContainsFunc(m.queue, releases) ||
		m.work != nil && slices.ContainsFunc(m.work.entries, releases)
}

// spendQueued grants the charges that arrived while an escrow was being taken. Meanwhile DeleteFunc moves entries within the
// queue, but each that it keeps, such as a release, is always in it.
func (m *Machine) spendQueued() {
	if m.charges == 0 || m.escrow.isOff() {
		return
	}
	m.queue = slices.DeleteFunc(m.queue, func(waits *entry) bool {
		granted := waits.charge != nil && !waits.doubtful && m.spend(waits.id, *waits.charge, waits.kind == probing)
		if granted {
			m.charges--
		}
		return granted
	})
}

// note adds charges that were granted to the demand.
func (e *escrow) note(now time.Time, charges ...ledger.Charge) {
	if e.isOff() {
		return
	}
	for _, charge := range charges {
		e.limits, e.expiry = charge.Limits, charge.Reservation.Expiry
		e.demand.Add(now, e.options.Every, charge)
	}
}

// localise makes local of the newest ledger that is known.
func (e *escrow) localise(known Snapshot) {
	if e.local != nil && e.localOf == known.Version {
		return
	}
	e.local, e.localOf = ledger.Edit(known.State), known.Version
	e.most = max(ledger.MaxBytes/unrecordedOfAll, (ledger.MaxBytes-e.local.Size())/unrecordedOfFree)
	e.local.Spent(e.key, e.granted)
	if e.flight != nil {
		recorded := func(one ledger.Reservation) bool { return e.flight.recorded[one.Key()] }
		e.local.Bound(e.key, e.flight.next, slices.DeleteFunc(slices.Clone(e.granted), recorded))
	}
	for _, granted := range e.granted {
		e.local.Admit(granted)
	}
}

// due returns when the ledger must be written for the escrow's sake. Grants from
// an escrow of a lost ledger are recorded once there is one again.
func (e *escrow) due(now time.Time, known Snapshot, life life) time.Time {
	if e.isOff() || known.void() {
		return never
	}
	held, holds := known.State.Escrows[e.key]
	again := now
	if !e.tried.IsZero() {
		again = e.tried.Add(e.options.Every)
	}
	switch {
	case !holds && len(e.granted) == 0:
		return never
	case life != working, holds && held.Recalled, e.isFull():
		return again
	case e.low:
		return later(again, e.written.Add(e.options.Every/renewals))
	default:
		return later(again, e.written.Add(e.options.Every))
	}
}

// isFull reports whether no more grants may be left unrecorded.
func (e *escrow) isFull() bool { return e.bytes >= e.most }

// isHeld reports whether there is something to record or to return.
func (e *escrow) isHeld(base ledger.State) bool {
	_, holds := base.Escrows[e.key]
	return holds || len(e.granted) > 0
}

// with returns a ledger with the grants.
func (e *escrow) with(base ledger.State) ledger.State {
	if len(e.granted) == 0 {
		return base
	}
	draft := ledger.Edit(base)
	e.record(draft)
	return draft.State()
}

// record puts the grants in place of the escrow.
func (e *escrow) record(draft *ledger.Draft) {
	draft.Return(e.key)
	for _, granted := range e.granted {
		draft.Admit(granted)
	}
}

// take reserves the next escrow in a draft that already records the grants. It takes none unless may is true and enough
// was granted lately. The same write grants the charges.
func (e *escrow) take(now time.Time, draft *ledger.Draft, charges []ledger.Charge, may bool) *flight {
	made := &flight{recorded: map[ledger.Key]bool{}, began: now, until: now.Add(e.options.Life)}
	for _, granted := range e.granted {
		made.recorded[granted.Key()] = true
	}
	then := escrow{options: e.options, demand: e.demand, limits: e.limits, expiry: e.expiry} // as it is once that is written
	then.note(now, charges...)
	if !may || now.Before(e.notBefore) || then.demand.Charges(now, e.options.Every) < e.options.Busy {
		return made
	}
	e.number++
	next := ledger.Escrow{
		EscrowKey: e.key, Holder: e.options.Holder, Renewal: e.number, Expiry: then.expiry.Add(e.options.Life),
	}
	made.next = draft.Take(next, then.demand, then.limits, e.options.Parts)
	return made
}

// begin notes that a write is under way.
func (e *escrow) begin(made *flight) { e.flight, e.local = made, nil }

// end ends the write under way; written, if it happened.
func (e *escrow) end(written bool) {
	made := e.flight
	e.flight, e.local = nil, nil
	if made == nil || !written {
		return
	}
	e.tried = time.Time{}
	e.granted = slices.DeleteFunc(e.granted, func(one ledger.Reservation) bool { return made.recorded[one.Key()] })
	e.bytes = 0
	for _, one := range e.granted {
		e.bytes += one.Size()
	}
	e.written, e.until, e.taken, e.low = made.began, time.Time{}, nil, false
	if made.next != nil {
		e.until, e.taken = made.until, made.next.Amounts
	}
}

// abandon gives the escrow up, because the API server rejects something that was granted from it. The ledger
// keeps its room until the escrow expires.
func (e *escrow) abandon() {
	e.key = e.key.Next()
	e.forget()
}

func (e *escrow) forget() {
	e.granted, e.bytes, e.until, e.local = nil, 0, time.Time{}, nil
	e.taken, e.low = nil, false
}

// records reports whether a write has something in it that was granted from escrow.
func (f *flight) records() bool { return f != nil && len(f.recorded) > 0 }

// cancel takes a grant back, and reports whether the ledger can't have it.
func (e *escrow) cancel(key ledger.Key, known *known) bool {
	at := slices.IndexFunc(e.granted, func(one ledger.Reservation) bool { return one.Key() == key })
	if at < 0 {
		return false
	}
	e.bytes -= e.granted[at].Size()
	e.granted, e.local = slices.Delete(slices.Clone(e.granted), at, at+1), nil
	_, recorded := known.snapshot.State.Reservations[key]
	return !recorded && known.doubt == none && (e.flight == nil || !e.flight.recorded[key])
}

// see notes a ledger that a watch or a read has shown. It starts the wait for each escrow that the ledger
// recalls. If its own is recalled, it takes the next one later, so that the replica that recalled it has its
// turn.
func (e *escrow) see(now time.Time, seen ledger.State) {
	e.trackRecalls(now, seen)
	if seen.Quota != "" && e.limits.Quota != "" && seen.Quota != e.limits.Quota {
		e.forget() // it was granted under a quota of the same name that is gone
		e.limits = ledger.Limits{}
	}
	if held, holds := seen.Escrows[e.key]; holds && held.Recalled {
		e.notBefore = later(e.notBefore, now.Add(e.options.Every))
	}
}

// trackRecalls remembers since when each recall is known. It reports whether other replicas may still grant
// from their escrows and, if all of these are recalled, until when.
func (e *escrow) trackRecalls(now time.Time, base ledger.State) (standing bool, over time.Time) {
	var recalled []ledger.Life
	for _, one := range base.ForeignEscrows(e.options.UID) {
		if !one.Recalled {
			standing = true
			continue
		}
		recalled = append(recalled, one.Life())
		left := e.recalls.Left(now, one.Life(), e.options.Recall)
		if _, known := e.recalls[one.Life()]; !known { // the replica that recalled it has a turn before another is taken
			e.notBefore = later(e.notBefore, now.Add(e.options.Recall))
		}
		if left > 0 {
			standing, over = true, later(over, now.Add(left))
		}
	}
	e.recalls.See(now, recalled...)
	return standing, over
}
