// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"
	"time"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// Machine enforces one quota. The zero value is of no use: call New.
type Machine struct {
	options Options

	// queue has the entries that arrived since the last batch, in order of
	// arrival, and arrivals is the number of the newest charge.
	queue    []*entry
	arrivals int
	// charges is how many of the queue are charges.
	charges int
	// parked are charges that would be denied and whose patience isn't over. They are in every batch that may have room for
	// them.
	parked []*entry
	// work is the batch under way; nil for none.
	work *batch
	// lastBatch, lastWrite and lastCharges are as in a situation.
	lastBatch   time.Time
	lastWrite   time.Duration
	lastCharges int
	// rest is how long the last one was; zero after a batch that was written.
	rest     time.Duration
	known    known
	settling settling
	escrow   escrow
	life     life
	relieved relief

	// now and effects are of the Step under way.
	now     time.Time
	effects []Effect
}

// life is how much of its work a machine still does.
type life int

const (
	working life = iota
	// returning: no escrow is taken any more, and the one that is held is given back.
	returning
	// ended: nothing is begun any more.
	ended
)

// New makes a Machine that knows nothing yet.
func New(options Options) *Machine {
	return &Machine{options: options, escrow: newEscrow(options.Escrow)}
}

// Step takes an event that happened now and returns the effects that the caller
// must carry out. Time must not go back.
func (m *Machine) Step(now time.Time, event Event) []Effect {
	m.now, m.effects = now, nil
	switch event := event.(type) {
	case Charge:
		m.charge(event)
	case Edit:
		m.edit(event)
	case Cancel:
		m.cancel(event)
	case Seen:
		m.seen(event.Snapshot)
	case Replaced:
		m.replaced(event.Snapshot)
	case Gone:
		m.known.snapshot, m.known.gone = Snapshot{}, true
	case Counted:
		m.settling.freed = m.settling.freed || event.Freed
		m.settling.weigh(m.now, event.Freed)
	case Observed, Loaded, Swapped:
		m.reply(event)
	case Return:
		m.life = max(m.life, returning)
	case End:
		m.life = ended
	} // a Tick only lets time pass
	m.proceed()
	return m.effects
}

// Current returns the newest ledger that the machine knows, which may be older
// than the stored one.
func (m *Machine) Current() Snapshot { return m.known.snapshot }

// Patience returns how long a charge that arrives now waits for room. The more charges wait already, the shorter: freed room is
// theirs first. But if room was freed for many of late, as many more may wait.
func (m *Machine) Patience() time.Duration {
	crowd := int64(leastCrowd + m.relieved.lately(m.now))
	return time.Duration(int64(m.options.Patience) * crowd / (crowd + int64(len(m.parked)+m.charges)))
}

// Idle reports whether no caller waits and nothing is under way.
func (m *Machine) Idle() bool { return m.work == nil && len(m.queue)+len(m.parked) == 0 }

func (m *Machine) emit(effect Effect) { m.effects = append(m.effects, effect) }

func (m *Machine) charge(event Charge) {
	if m.spend(event.ID, event.Charge, event.Probe) {
		return
	}
	if len(m.queue)+len(m.parked) >= m.options.MaxWaiting {
		m.emit(Answer{ID: event.ID, Err: ErrBusy})
		return
	}
	kind := charging
	if event.Probe {
		kind = probing
	}
	m.arrivals++
	added := &entry{id: event.ID, kind: kind, arrival: m.arrivals, since: m.now, charge: &event.Charge, patience: event.Patience}
	if m.lacksRoom(added) {
		m.park(added)
		return
	}
	m.enqueue(added)
}

// lacksRoom reports whether a charge is denied by all that is known, so that it waits for room without a batch that would
// find the same. A batch under way may make room, and so may a settle that is due, and the return of an escrow.
func (m *Machine) lacksRoom(added *entry) bool {
	state := &m.known.snapshot.State
	if m.life == ended || m.work != nil || m.settling.isDue() || len(state.Escrows)+len(m.escrow.granted) > 0 {
		return false
	}
	if m.known.doubt != none || !m.known.usable() {
		return false
	}
	m.escrow.localise(m.known.snapshot)
	added.pending = m.escrow.local.Judge(*added.charge)
	return added.denied() && added.patient(m.now)
}

// park has a denied charge wait for room.
func (m *Machine) park(e *entry) {
	e.parked = true
	m.parked = append(m.parked, e)
}

func (m *Machine) edit(event Edit) {
	kind := editing
	if event.Written {
		kind = proving
	}
	m.enqueue(&entry{id: event.ID, kind: kind, since: m.now, change: event.Change, until: event.Until})
}

func (m *Machine) enqueue(added *entry) {
	if m.life == ended {
		m.fail(added, ErrEnded)
		return
	}
	m.queue = append(m.queue, added)
	if added.charge != nil {
		m.charges++
	}
	m.hurry(added)
}

// cancel forgets a charge whose caller has gone, and takes its reservation back:
// it may be written already, or be in a write that is under way or whose reply
// was lost.
func (m *Machine) cancel(event Cancel) {
	waiting := func(e *entry) bool { return event.ID != 0 && e.id == event.ID }
	written := !m.escrow.cancel(event.Reserved, &m.known)
	if at := slices.IndexFunc(m.queue, waiting); at >= 0 {
		if m.queue[at].charge != nil {
			m.charges--
		}
		written = written && m.queue[at].doubtful // otherwise it was stored in no batch
		m.queue = slices.Delete(m.queue, at, at+1)
	}
	m.parked = slices.DeleteFunc(m.parked, waiting)
	if m.work != nil {
		m.work.abandon(waiting)
	}
	if written && event.Reserved != (ledger.Key{}) && m.life != ended {
		m.release(event.Reserved, event.Until)
	}
}

// seen takes a ledger that a watch has shown. If it is newer than what is known, another replica wrote it, or this one
// did and the reply is under way (known.own). There may be room in it for parked charges, and reservations of objects
// that are counted already.
func (m *Machine) seen(snapshot Snapshot) {
	if m.known.keep(snapshot) {
		m.known.other(snapshot.Version, m.now)
		m.escrow.see(m.now, snapshot.State)
		m.settling.weigh(m.now, true)
	}
}

// replaced takes a ledger that this process stored outside of a batch.
func (m *Machine) replaced(snapshot Snapshot) {
	m.known.own(snapshot.Version)
	if m.known.keep(snapshot) {
		m.settling.weigh(m.now, true)
	}
}

// proceed begins the work that is due, and asks for a wake-up at the next due
// time.
func (m *Machine) proceed() {
	if m.work != nil {
		m.goOn()
	}
	if m.life == ended {
		m.failAll(ErrEnded)
		return
	}
	m.tellUntaken()
	for begun := true; begun && m.work == nil; {
		begun = m.begin()
	}
}

// begin begins to weigh a settle, or a batch, and reports whether one was due.
func (m *Machine) begin() bool {
	if m.settling.isToWeigh(m.now) {
		m.work = &batch{base: m.known.snapshot, phase: weighing}
		m.emit(Observe{Ledger: m.work.base.State})
		return true
	}
	situation := m.situation()
	due, records := m.options.nextBatch(situation), m.escrow.due(m.now, m.known.snapshot, m.life)
	situation.records, due = !records.After(m.now), earlier(due, records)
	if !due.After(m.now) {
		m.beginBatch(situation)
		return true
	}
	if next := earlier(earlier(due, m.settling.weighAt()), m.settling.tellAt()); next.Before(never) {
		m.emit(WakeAt{Time: next})
	}
	return false
}

func (m *Machine) situation() situation {
	s := situation{
		now: m.now, lastBatch: m.lastBatch, lastWrite: m.lastWrite, lastCharges: m.lastCharges,
		charges: m.charges, edits: len(m.queue) - m.charges,
		settle: m.settling.need, freed: m.settling.freed,
		parked: len(m.parked) > 0, patience: never, fresher: m.known.isFresher(), contended: m.known.contended(m.now),
	}
	for _, entry := range m.parked {
		s.patience = earlier(s.patience, entry.deadline())
	}
	return s
}

// answer makes a pending decision final.
func (m *Machine) answer(e *entry) {
	if e.pending == nil {
		m.fail(e, ErrNoLedger)
		return
	}
	if e.parked && e.granted() {
		m.relieved.note(m.now)
	}
	if e.hasCaller() {
		m.emit(Answer{ID: e.id, Decision: e.pending})
	}
}

func (m *Machine) fail(e *entry, err error) {
	if e.hasCaller() {
		m.emit(Answer{ID: e.id, Err: err})
	}
}

func (m *Machine) failAll(err error) {
	for _, entry := range slices.Concat(m.parked, m.queue) {
		m.fail(entry, err)
	}
	m.parked, m.queue, m.charges = nil, nil, 0
}
