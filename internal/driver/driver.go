// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// driver runs one quota's machine.
type driver struct {
	group *Group
	quota string
	// call makes a call of the store in a goroutine of its own, which outlives the event that has
	// caused it. The function that it returns ends the wait for the call's turn.
	call func(func(context.Context)) (hurry func())
	// current is the newest ledger that the machine knows.
	current atomic.Pointer[machine.Snapshot]
	// trouble is nil while the store can be read and written, and untaken while the ledger takes the count.
	trouble, untaken atomic.Pointer[Trouble]

	// mu guards the fields below.
	mu      sync.Mutex
	machine *machine.Machine
	// request -> the channel of the caller that waits for its answer
	waiting map[machine.RequestID]chan<- machine.Answer
	last    machine.RequestID
	// hurry is for the latest call.
	hurry func()
	// timer fires at wakeAt; nil before the first.
	timer  clock.Timer
	wakeAt time.Time
	// checking: the timer of the next check runs.
	checking bool
	// forgotten: the quota is gone. Nothing is counted for it any more, and the observer
	// is told nothing.
	forgotten bool
}

func newDriver(group *Group, quota string, number int) *driver {
	options := group.options.Options
	if options.Escrow.UID != "" {
		// A machine knows nothing of another machine's escrow: a quota may be forgotten and come again.
		options.Escrow.UID += types.UID(fmt.Sprint("-", number))
	}
	d := &driver{
		group: group, quota: quota, call: group.call, hurry: func() {},
		machine: machine.New(options), waiting: map[machine.RequestID]chan<- machine.Answer{},
	}
	d.current.Store(&machine.Snapshot{})
	return d
}

// step hands the machine an event.
func (d *driver) step(event machine.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lockedStep(event)
}

// lockedStep hands the machine an event, and carries out its effects.
func (d *driver) lockedStep(event machine.Event) {
	effects := d.machine.Step(d.group.clock.Now(), event)
	if known := d.machine.Current(); known.Version != d.current.Load().Version {
		known.State = known.State.Indexed() // once, and not by each request that looks at it
		d.current.Store(&known)
	}
	for _, effect := range effects {
		switch effect := effect.(type) {
		case machine.Answer:
			d.lockedAnswer(effect)
		case machine.Observe:
			d.lockedStep(machine.Observed{Observation: d.lockedObserve(effect)})
		case machine.Load:
			d.lockedCall(func(ctx context.Context) machine.Event { return d.load(ctx, effect) })
		case machine.Swap:
			d.lockedCall(func(ctx context.Context) machine.Event { return d.swap(ctx, effect) })
		case machine.WakeAt:
			d.lockedWakeAt(effect.Time)
		case machine.Untaken:
			d.noteUntaken(effect)
		default:
			d.lockedReport(effect)
		}
	}
}

// lockedObserve returns the count, unless the quota is gone: the count under its
// name is another quota's then. The count is read under its own lock, and never
// waits for this one.
func (d *driver) lockedObserve(asked machine.Observe) *ledger.Observation {
	if d.forgotten {
		return nil
	}
	return d.group.counter.Observe(d.quota, asked.Ledger)
}

func (d *driver) lockedAnswer(answer machine.Answer) {
	if waiter, known := d.waiting[answer.ID]; known {
		delete(d.waiting, answer.ID)
		waiter <- answer // it has room
	}
}

// lockedCall makes a call and hands its reply to the machine, which makes one call at a time.
func (d *driver) lockedCall(call func(context.Context) machine.Event) {
	d.hurry = d.call(func(ctx context.Context) { d.step(call(ctx)) })
	if len(d.waiting) > 0 {
		d.hurry()
	}
}

func (d *driver) load(ctx context.Context, load machine.Load) machine.Event {
	snapshot, err := d.group.store.Load(ctx, d.quota, load)
	d.note(err, false)
	return machine.Loaded{Snapshot: snapshot, Err: err}
}

func (d *driver) swap(ctx context.Context, swap machine.Swap) machine.Event {
	start := d.group.clock.Now()
	version, err := d.group.store.Swap(ctx, d.quota, swap.Previous, swap.Next)
	d.note(err, true)
	return machine.Swapped{Version: version, Took: d.group.clock.Since(start), Err: err}
}

// note records since when calls of the store fail. While they do, the driver checks them, and so notices their success
// even without requests. There is one call at a time.
func (d *driver) note(err error, written bool) {
	before := d.trouble.Load()
	if errors.Is(err, machine.ErrConflict) {
		err, written = nil, false // the ledger can be read; whether it can be written is unknown
	}
	if err == nil && (before == nil || written || !before.writing) {
		d.trouble.Store(nil)
		return
	}
	if err != nil {
		trouble := &Trouble{Since: d.group.clock.Now(), Err: err, writing: written}
		if before != nil {
			trouble.Since, trouble.writing = before.Since, before.writing || written
		}
		d.trouble.Store(trouble)
	}
	if before == nil {
		d.group.troubled(d.quota)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.checking {
		d.checking = true
		d.group.clock.AfterFunc(checkEvery, d.check)
	}
}

// noteUntaken notes that the ledger has not taken the count, or that it has again.
func (d *driver) noteUntaken(effect machine.Untaken) {
	var trouble *Trouble
	if !effect.Since.IsZero() {
		trouble = &Trouble{Since: effect.Since, Err: effect.Err, Untaken: true}
	}
	d.untaken.Store(trouble)
	d.group.troubled(d.quota)
}

// check has the ledger read and written, if that still fails.
func (d *driver) check() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.checking = false
	if d.forgotten || d.trouble.Load() == nil {
		return
	}
	d.lockedStep(machine.Edit{Change: func(*ledger.Draft) {}, Written: true, Until: d.group.clock.Now().Add(checkEvery)})
}

// lockedWakeAt sets the timer, unless it fires before anyway.
func (d *driver) lockedWakeAt(at time.Time) {
	now := d.group.clock.Now()
	if d.wakeAt.After(now) && !d.wakeAt.After(at) {
		return
	}
	if d.timer != nil {
		d.timer.Stop()
	}
	d.wakeAt = at
	d.timer = d.group.clock.AfterFunc(at.Sub(now), func() { d.step(machine.Tick{}) })
}

func (d *driver) lockedReport(effect machine.Effect) {
	if d.forgotten {
		return
	}
	observer := d.group.observer
	switch effect := effect.(type) {
	case machine.Committed:
		observer.Committed(d.quota, effect.Batch, effect.Took)
		observer.Ended(d.quota, effect.Ends)
	case machine.Conflicted:
		observer.Conflicted(d.quota)
	case machine.Failed:
		observer.Failed(d.quota, effect.Err)
	case machine.Impossible:
		observer.Impossible(d.quota, effect.Err)
	}
}

// do hands the machine a charge or an edit and waits for its answer. If the
// context ends first, the outcome isn't known: the reservation that the charge
// may have made is released.
func (d *driver) do(ctx context.Context, event func(machine.RequestID) machine.Event, reserved ledger.Key) (ledger.Decision, error) {
	answers := make(chan machine.Answer, 1)
	d.mu.Lock()
	d.last++
	id := d.last
	d.waiting[id] = answers
	d.lockedStep(event(id))
	if _, waits := d.waiting[id]; waits {
		d.hurry()
	}
	d.mu.Unlock()
	select {
	case answer := <-answers:
		if answer.Err != nil {
			return nil, fmt.Errorf("waiting for quota %s: %w", d.quota, answer.Err)
		}
		return answer.Decision, nil
	case <-ctx.Done():
		d.abandon(id, reserved)
		return nil, fmt.Errorf("waiting for quota %s: %w", d.quota, d.cause(ctx))
	}
}

// abandon forgets a request; id is zero for a request that was answered.
func (d *driver) abandon(id machine.RequestID, reserved ledger.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.waiting, id)
	d.lockedStep(machine.Cancel{ID: id, Reserved: reserved, Until: d.group.clock.Now().Add(d.group.options.EditTimeout)})
}

func (d *driver) patience() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.machine.Patience()
}

func (d *driver) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forgotten = true
}
