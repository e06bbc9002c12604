// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/namespaces"
)

// options are those of the operator.
func options() machine.Options {
	return machine.Options{Pace: 40 * time.Millisecond, PaceEach: 2 * time.Millisecond, Patience: 150 * time.Millisecond, MaxWaiting: 10000}
}

// withEscrow in a seed: replicas take escrows.
const withEscrow = 1 << 63

// withModes in a seed: quotas change between Deny and Audit.
const withModes = 1 << 62

// withSurge in a seed: quotas have surge, and some objects replace others. No seed by the clock has it.
const withSurge = 1 << 58

const (
	escrowLife   = 2 * time.Second
	escrowRecall = 2200 * time.Millisecond
)

// editTimeout is as the driver's.
const editTimeout = 30 * time.Second

// kind is a kind of watch.
type kind int

const (
	watchLedgers kind = iota
	watchNamespaces
	watchQuotas
	// The leader counts by watches of its own.
	countNamespaces
	countWidgets
	countClaims
	kinds
)

// stream is how far a watch has come.
type stream struct {
	// listed: the first list has come.
	listed   bool
	position int
	// rest is the part of its list that a mutated watch has yet to show.
	rest []func()
}

// replica is one process of the operator.
type replica struct {
	world *world
	id    int
	alive bool
	// offset is how far the time that its machines are told is from the world's.
	offset  time.Duration
	streams [kinds]stream
	drivers [maxQuotas]*driver
	// forgotten are drivers of quotas that are gone, whose callers still wait.
	forgotten []*driver
	serial    int
	// quotas and ledgers are the informers' caches.
	quotas  [maxQuotas]*quota
	ledgers [maxQuotas]*stored
	// memory is the front end's index of quotas and namespaces.
	memory *namespaces.Memory
	// trusted is when a mutated front end looked for a question.
	trusted map[trust]time.Time
	// counter counts while the replica leads; nil otherwise.
	counter *counter
	// born and busy are when it started, and when it last was held up.
	busy time.Time
}

func newReplica(w *world, id int, offset time.Duration) *replica {
	return &replica{world: w, id: id, offset: offset}
}

// options are those of one machine.
func (r *replica) options() machine.Options {
	o := options()
	if r.world.shape.seed&withEscrow == 0 {
		return o
	}
	o.Escrow = machine.EscrowOptions{
		Holder: "replica" + r.world.number(uint64(r.id)), UID: types.UID("r" + r.world.number(uint64(r.id)) + "-" + r.world.number(uint64(r.serial))),
		Life: escrowLife, Recall: escrowRecall, Every: time.Second,
		Busy: 1, Parts: int64(1 + r.world.shape.seed%2),
	}
	if r.world.mutation.endless {
		o.Escrow.Life = time.Hour
	}
	if r.world.mutation.noRecall {
		o.Escrow.Recall = -time.Second
	}
	return o
}

// now is by the clock that counts how much time has passed.
func (r *replica) now() time.Time { return r.world.now.Add(r.offset) }

// wall is the time on the clock on the wall, which the replica writes into ledgers. The clock may be wrong, jump now and
// then, or stand still.
func (r *replica) wall() time.Time {
	const scatters = 0x9e3779b97f4a7c15
	drawn := (r.world.shape.seed<<2 + uint64(r.id)) * scatters
	wrong := func(drawn uint64) time.Duration {
		return time.Duration(drawn>>32%uint64(2*mostWrong/time.Second))*time.Second - mostWrong
	}
	switch now := r.world.now; drawn >> 30 % 4 {
	case 0:
		return now
	case 1:
		return now.Add(wrong(drawn))
	case 2:
		return now.Add(wrong(drawn + uint64(now.Unix()/8)*scatters))
	default:
		return r.world.start.Add(wrong(drawn))
	}
}

// stamp is the time that is stored for a life of this length.
func (r *replica) stamp(long time.Duration) time.Time {
	return r.wall().Add(long).Truncate(time.Second)
}

// start begins a process that knows nothing.
func (r *replica) start() {
	*r = replica{world: r.world, id: r.id, offset: r.offset, alive: true, serial: r.serial, busy: r.world.now}
	r.memory, r.trusted = namespaces.NewMemory(r.world.define), map[trust]time.Time{}
}

// crash loses everything but the messages on their way.
func (r *replica) crash() {
	w := r.world
	for _, lost := range r.all() {
		maps.DeleteFunc(w.unrecorded, func(_ recording, by *driver) bool { return by == lost })
		if lost.call != nil {
			w.orphan(lost.call)
		}
	}
	for _, request := range w.requests {
		if request.replica == r && request.stage != stageNone {
			request.stage = stageNone
			request.fail("its replica crashed")
		}
	}
	for _, edit := range w.edits {
		if edit.replica == r && edit.stage == editAsked {
			edit.stage = editOver
		}
	}
	if w.leader == r.id {
		w.leader = -1
	}
	*r = replica{world: w, id: r.id, offset: r.offset, serial: r.serial}
}

// saw returns the revision up to which the front end's watch has shown namespaces.
func (r *replica) saw() uint64 {
	if at := r.streams[watchNamespaces].position; at > 0 {
		return r.world.namespaces.changes[at-1].revision
	}
	return 0
}

func (r *replica) synced() bool {
	return r.streams[watchNamespaces].listed && r.streams[watchQuotas].listed
}

func (r *replica) all() []*driver {
	all := make([]*driver, 0, maxQuotas+len(r.forgotten))
	for _, driver := range r.drivers {
		if driver != nil {
			all = append(all, driver)
		}
	}
	return append(all, r.forgotten...)
}

// driver returns the one of a quota.
func (r *replica) driver(q int) *driver {
	if r.drivers[q] == nil {
		r.serial++
		options := r.options()
		r.drivers[q] = &driver{
			replica: r, quota: q, serial: r.serial, holder: options.Escrow.UID, machine: machine.New(options), wakeAt: r.now(),
		}
	}
	return r.drivers[q]
}

// forget drops the driver of a quota that is gone.
func (r *replica) forget(q int) {
	if gone := r.drivers[q]; gone != nil {
		r.drivers[q] = nil
		if gone.call != nil || len(gone.waiting) > 0 {
			r.forgotten = append(r.forgotten, gone)
		}
	}
}

func (r *replica) current(q int) machine.Snapshot {
	if r.drivers[q] == nil {
		return machine.Snapshot{}
	}
	return r.drivers[q].machine.Current()
}

// driver interprets the effects of one machine.
type driver struct {
	replica *replica
	quota   int
	serial  int
	machine *machine.Machine
	// holder is of its escrows; empty if it takes none.
	holder types.UID
	// call is under way; nil for none.
	call   *call
	wakeAt time.Time
	// sleeping: a timer fires at wakeAt.
	sleeping bool
	waiting  []waiter
	last     machine.RequestID
	// observed is the last count that was shown since the last write.
	observed *observed
	// read is when a load last took effect, and looked when one that read the spec did.
	read, looked time.Time
	// untaken: the machine reported that its ledger does not take the count. refuses is since when the ledger at
	// version leaves every charge undecided all the same.
	untaken bool
	refuses time.Time
	version machine.Version
	// owes is since when a changed count may be unsettled; zero for never.
	owes time.Time
	// held is until when a mutated count is held back.
	held time.Time
	// released are the charges that were given back.
	released []ledger.Key
}

// waiter is a charge, a probe or an edit that waits for an answer.
type waiter struct {
	id     machine.RequestID
	answer *reply
	// request is the owner of the charge; nil for a probe and for an edit.
	request *request
}

// reply is an answer once it came.
type reply struct {
	came   bool
	answer machine.Answer
	// read is when the answering driver last read the ledger, and looked when it last read the spec.
	read, looked time.Time
}

// call is a read or write of a ledger that is under way.
type call struct {
	quota   int
	replica int
	swap    *machine.Swap
	began   time.Time
	// done: it took effect, and result is the reply.
	done   bool
	result machine.Event
	// observed is the count by which the write settles.
	observed *observed
	reader   *driver
	// spec: the version of the quota's spec is read, too.
	spec bool
}

func (d *driver) step(event machine.Event) {
	if cancel, ok := event.(machine.Cancel); ok && d.replica.world.remembers {
		d.released = append(d.released, cancel.Reserved)
	}
	effects := d.machine.Step(d.replica.now(), event)
	if trace := d.replica.world.trace; trace != nil {
		trace.step(d, event, effects)
	}
	if observed, ok := event.(machine.Observed); ok && observed.Observation != nil {
		d.learn(d.observed, effects)
	}
	for _, effect := range effects {
		switch effect := effect.(type) {
		case machine.Answer:
			d.answer(effect)
		case machine.Observe:
			d.observed = nil
			d.step(machine.Observed{Observation: d.observe(effect)})
		case machine.Load:
			d.call = &call{quota: d.quota, replica: d.replica.id, began: d.replica.world.now, reader: d, spec: effect.Spec && !d.remembers()}
		case machine.Swap:
			d.beginSwap(effect)
		case machine.WakeAt:
			d.sleepUntil(effect.Time)
		default:
			d.replica.world.report(d, effect)
		}
	}
}

func (d *driver) beginSwap(swap machine.Swap) {
	w := d.replica.world
	d.call = &call{quota: d.quota, replica: d.replica.id, swap: &swap, began: w.now, reader: d}
	if !swap.Recalls {
		d.call.observed, d.observed = d.observed, nil
	}
	if w.mutation.answersEarly {
		w.answerEarly(d, swap.Next)
	}
}

// remembers reports whether, by a mutation, the machine isn't told a spec's version because it was some seconds before.
func (d *driver) remembers() bool {
	w := d.replica.world
	return w.mutation.rarelyLooks && !d.looked.IsZero() && w.now.Sub(d.looked) < 10*time.Second
}

// sleepUntil sets the timer, unless it fires before anyway.
func (d *driver) sleepUntil(at time.Time) {
	if now := d.replica.now(); d.sleeping && d.wakeAt.After(now) && !d.wakeAt.After(at) {
		return
	}
	d.wakeAt, d.sleeping = at, true
}

func (d *driver) isDue() bool {
	now := d.replica.now()
	return d.sleeping && !d.wakeAt.After(now) || !d.held.IsZero() && !d.held.After(now)
}

func (d *driver) tick() {
	if !d.held.IsZero() && !d.held.After(d.replica.now()) {
		d.step(machine.Counted{})
		d.held = time.Time{}
		return
	}
	d.sleeping = false
	d.step(machine.Tick{})
}

func (d *driver) answer(answer machine.Answer) {
	for i, waiter := range d.waiting {
		if waiter.id == answer.ID {
			*waiter.answer = reply{came: true, answer: answer, read: d.read, looked: d.looked}
			d.waiting = append(d.waiting[:i:i], d.waiting[i+1:]...)
			// From the escrow that was taken meanwhile, if no write has reserved it.
			if r := waiter.request; r != nil && ledger.IsGranted(answer.Decision) && r.granted[d.quota] == nil && d.holdsEscrow() {
				r.grantedAtOnce(d.quota)
			}
			return
		}
	}
}

// holdsEscrow reports whether the ledger that the machine knows has an escrow of its own.
func (d *driver) holdsEscrow() bool {
	for key := range d.machine.Current().State.Escrows {
		if key.Process == d.holder {
			return true
		}
	}
	return false
}

// do hands the machine a charge or an edit, and returns where the answer is going to be.
func (d *driver) do(event func(machine.RequestID) machine.Event) *reply {
	d.last++
	waits := waiter{id: d.last, answer: &reply{}}
	waits.answer.answer.ID = d.last
	d.waiting = append(d.waiting, waits)
	d.step(event(d.last))
	return waits.answer
}

// abandon forgets a request; id is zero for an answered request.
func (d *driver) abandon(id machine.RequestID, reserved ledger.Key) {
	for i, waiter := range d.waiting {
		if waiter.id == id {
			d.waiting = append(d.waiting[:i:i], d.waiting[i+1:]...)
			break
		}
	}
	delete(d.replica.world.unrecorded, recording{d.quota, reserved})
	d.step(machine.Cancel{ID: id, Reserved: reserved, Until: d.replica.now().Add(editTimeout)})
}

// take makes the API server carry out a call.
func (w *world) take(c *call) {
	c.done = true
	if c.swap == nil {
		snapshot := machine.Snapshot{}
		if ledger := w.ledgers.newest[c.quota]; ledger != nil {
			snapshot = ledger.snapshot
		}
		if c.spec {
			snapshot.Spec, c.reader.looked = w.specOf(c.quota), w.now
		}
		c.reader.read = w.now
		c.result = machine.Loaded{Snapshot: snapshot}
		return
	}
	before := w.ledgers.newest[c.quota]
	version, err := w.swap(c.quota, c.swap.Previous, c.swap.Next, w.mutation.overwrites && !c.swap.Previous.IsZero())
	if err == nil {
		w.include(before, c.observed)
	}
	c.result = machine.Swapped{Version: version, Err: err}
}

// specOf returns the stored version of a quota's spec.
func (w *world) specOf(quota int) *machine.Spec {
	if stored := w.quotas.newest[quota]; stored != nil {
		return &machine.Spec{Quota: stored.uid, Generation: stored.generation}
	}
	return &machine.Spec{}
}

// lost is the reply to a call of which nothing is known.
func (c *call) lost() machine.Event {
	if c.swap == nil {
		return machine.Loaded{Err: errLost}
	}
	return machine.Swapped{Err: errLost}
}

func (w *world) orphan(c *call) {
	if c.swap != nil && !c.done {
		w.orphans = append(w.orphans, c)
	}
}

// deliver hands the machine a reply.
func (d *driver) deliver(result machine.Event) {
	took := d.replica.world.now.Sub(d.call.began)
	d.call = nil
	if swapped, ok := result.(machine.Swapped); ok {
		swapped.Took = took
		result = swapped
	}
	d.step(result)
}
