// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// Group runs the machines of all quotas. Its methods may be called concurrently.
type Group struct {
	// ctx ends all calls of the store.
	ctx      context.Context //nolint:containedctx // the owner's, for calls that outlive each charge
	clock    Clock
	store    Store
	counter  Counter
	observer Observer
	// troubled is told of each quota whose trouble begins, or whose ledger takes the count again.
	troubled func(quota string)
	options  Options

	// running are the calls of the store.
	running sync.WaitGroup
	// background has one element for each of them that took a turn.
	background chan struct{}
	// mu guards the fields below.
	mu sync.Mutex
	// ended: every machine is told that the process stops.
	ended bool
	// quota name -> driver
	drivers map[string]*driver
	// made is how many drivers were.
	made int
}

// New makes a Group that works until ctx ends.
func New(ctx context.Context, clock Clock, store Store, observer Observer, options Options) *Group {
	group := &Group{
		ctx: ctx, clock: clock, store: store, counter: nobody{}, observer: observer, troubled: func(string) {},
		options: options, background: make(chan struct{}, backgroundCalls), drivers: map[string]*driver{},
	}
	context.AfterFunc(ctx, group.end)
	return group
}

// Follow makes the machines settle by the Counter's counts. It must be called
// before anything is charged.
func (g *Group) Follow(counter Counter) { g.counter = counter }

// OnTrouble has troubled called for each quota whose ledger can't be read or written from
// now on, or has not taken the count for five seconds, or takes it again. It must not block, and must be set before
// anything is charged.
func (g *Group) OnTrouble(troubled func(quota string)) { g.troubled = troubled }

// The Counter of a Group that follows none: it counts nothing.
type nobody struct{}

func (nobody) Observe(string, ledger.State) *ledger.Observation { return nil }

// Edit changes one quota's ledger together with the entries that wait there, and
// returns once that is stored, or changes nothing. The change may run several
// times. If there is no ledger, or if it was edited by anyone but the operator,
// the error is machine.ErrNoLedger.
func (g *Group) Edit(ctx context.Context, quota string, change func(*ledger.Draft)) error {
	_, err := g.driver(quota).do(ctx, func(id machine.RequestID) machine.Event {
		return machine.Edit{ID: id, Change: change}
	}, ledger.Key{})
	return err
}

// Check returns an error if a quota's ledger can't be read and written, or if there is none.
func (g *Group) Check(ctx context.Context, quota string) error {
	_, err := g.driver(quota).do(ctx, func(id machine.RequestID) machine.Event {
		return machine.Edit{ID: id, Change: func(*ledger.Draft) {}, Written: true}
	}, ledger.Key{})
	return err
}

// imposeTries is how many times Impose tries to change a ledger or else to make
// it: another client may make it, or delete it, in between.
const imposeTries = 3

// Impose makes a change of a quota's ledger that must hold whether or not the ledger exists. If there is none, a sealed
// one is made, so that the leader finds the change when it opens it.
func (g *Group) Impose(ctx context.Context, quota string, uid types.UID, change func(*ledger.Draft)) error {
	// The machine sets it before it answers, and runs no edit that it has
	// answered. Without an answer, the variable isn't read.
	var stranger types.UID
	sealed := false
	own := func(draft *ledger.Draft) {
		sealed = !draft.Peek().Sealed.IsZero()
		if stranger = draft.Quota(); stranger == uid {
			stranger = ""
			change(draft)
		}
	}
	var err error
	for range imposeTries {
		if err = g.Edit(ctx, quota, own); !errors.Is(err, machine.ErrNoLedger) {
			break
		}
		draft := ledger.Edit(ledger.State{Basis: ledger.Basis{Quota: uid}, Sealed: g.clock.Now().Truncate(time.Second)})
		own(draft)
		if _, err = g.Replace(ctx, quota, machine.Version{}, draft.State()); !errors.Is(err, machine.ErrConflict) {
			break
		}
	}
	if err == nil && sealed {
		err = g.outlive(ctx)
	}
	if err == nil && stranger != "" {
		return fmt.Errorf("ledger %s is still that of a quota of the same name that was deleted", quota)
	}
	return err
}

// outlive waits until no replica can grant from an escrow of a lost ledger any more: a replica may not know
// yet that it is lost.
func (g *Group) outlive(ctx context.Context) error {
	if g.options.Escrow.Recall == 0 {
		return nil
	}
	over := make(chan struct{})
	timer := g.clock.AfterFunc(g.options.Escrow.Recall, func() { close(over) })
	defer timer.Stop()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for what replicas hold in escrow: %w", context.Cause(ctx))
	}
}

// Counted tells the machines of the quotas whose count has changed, which settle it;
// freed, if less may be used.
func (g *Group) Counted(quotas []string, freed bool) {
	for _, quota := range quotas {
		g.tell(quota, machine.Counted{Freed: freed})
	}
}

// Saw tells a machine of a ledger that was seen in the store.
func (g *Group) Saw(quota string, snapshot machine.Snapshot) {
	g.driver(quota).step(machine.Seen{Snapshot: snapshot})
}

// Gone tells a machine that its ledger was seen to be missing from the store.
func (g *Group) Gone(quota string) {
	g.tell(quota, machine.Gone{})
}

// Knows reports whether the quota's ledger of this resourceVersion, or a newer one, is
// known.
func (g *Group) Knows(quota string, resourceVersion uint64) bool {
	known := g.Known(quota).Version
	return !known.IsZero() && known.ResourceVersion >= resourceVersion
}

// Replace stores a ledger in place of the one at version previous; with previous
// zero, where there is none. No batch makes a ledger or writes over one that was
// edited. The caller of Replace must account for the charges in flight.
func (g *Group) Replace(ctx context.Context, quota string, previous machine.Version, state ledger.State) (machine.Version, error) {
	ctx, cancel := context.WithTimeout(ctx, g.options.CallTimeout)
	defer cancel()
	version, err := g.store.Swap(ctx, quota, previous, state)
	if err != nil {
		return machine.Version{}, fmt.Errorf("replacing the ledger of quota %s: %w", quota, err)
	}
	g.driver(quota).step(machine.Replaced{Snapshot: machine.Snapshot{Version: version, State: state}})
	return version, nil
}

// Current returns the newest ledger that this process knows, which may be older
// than the stored one.
func (g *Group) Current(quota string) ledger.State {
	return g.Known(quota).State
}

// Known returns that ledger with its version; zero for none.
func (g *Group) Known(quota string) machine.Snapshot {
	if known, ok := g.existing(quota); ok {
		return *known.current.Load()
	}
	return machine.Snapshot{}
}

// Trouble returns since when a quota's ledger can't be read or written, and why;
// nil if it can. After a write that failed, only a write that succeeds ends it.
// Calls by Replace aren't counted.
func (g *Group) Trouble(quota string) *Trouble {
	if known, ok := g.existing(quota); ok {
		return known.trouble.Load()
	}
	return nil
}

// Untaken returns since when a quota's ledger does not take the count; nil if it does, or if that is so for less than
// five seconds.
func (g *Group) Untaken(quota string) *Trouble {
	if known, ok := g.existing(quota); ok {
		return known.untaken.Load()
	}
	return nil
}

// tell hands an event to a machine, if there is one. A machine that is made later
// asks for these facts itself.
func (g *Group) tell(quota string, event machine.Event) {
	if known, ok := g.existing(quota); ok {
		known.step(event)
	}
}

func (g *Group) existing(quota string) (*driver, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	known, ok := g.drivers[quota]
	return known, ok
}

// Forget drops the machine of a quota that is gone. Charges that wait are still
// answered. The observer isn't told of them.
func (g *Group) Forget(quota string) {
	g.mu.Lock()
	known, ok := g.drivers[quota]
	delete(g.drivers, quota)
	g.mu.Unlock()
	if ok {
		known.forget()
	}
}

// Drain gives escrow back. It returns once that and everything that was asked for so far is written, such as the
// release of charges whose callers have just gone, or when ctx ends.
func (g *Group) Drain(ctx context.Context) {
	g.mu.Lock()
	quotas := slices.Collect(maps.Keys(g.drivers))
	g.mu.Unlock()
	var all sync.WaitGroup
	for _, quota := range quotas {
		// An edit is in the batch of all that was queued before it, or in a later one, and is
		// answered once that is written.
		g.tell(quota, machine.Return{})
		all.Go(func() { _ = g.Edit(ctx, quota, func(*ledger.Draft) {}) })
	}
	all.Wait()
}

// Wait returns once all calls have ended. Call it after ctx has ended.
func (g *Group) Wait() {
	g.end()
	g.running.Wait()
}

// end tells every machine that the process stops. After that none begins a call.
func (g *Group) end() {
	g.mu.Lock()
	g.ended = true
	drivers := make([]*driver, 0, len(g.drivers))
	for _, known := range g.drivers {
		drivers = append(drivers, known)
	}
	g.mu.Unlock()
	for _, known := range drivers {
		known.step(machine.End{})
	}
}

// backgroundCalls is how many calls of the store are made at once without a waiting caller. When a leader begins to
// count a thousand quotas, it would write a thousand ledgers at once, the calls would take longer than their timeout,
// and each would be made again.
const backgroundCalls = 32

// call makes a call of the store, in its turn among the calls without a waiting caller. The function that it returns
// ends the wait for its turn.
//
// The turn may come late. That is safe: a Swap fails if the ledger has changed; an escrow's life begins when the
// machine decides on it, not when it is written; and a charge or an edit with a waiting caller doesn't wait for a turn
// (hurry).
func (g *Group) call(call func(context.Context)) (hurry func()) {
	awaited := make(chan struct{})
	g.running.Go(func() {
		select {
		case g.background <- struct{}{}:
			defer func() { <-g.background }()
		case <-awaited:
		case <-g.ctx.Done():
		}
		ctx, cancel := context.WithTimeout(g.ctx, g.options.CallTimeout)
		defer cancel()
		call(ctx)
	})
	return sync.OnceFunc(func() { close(awaited) })
}

func (g *Group) driver(quota string) *driver {
	g.mu.Lock()
	defer g.mu.Unlock()
	known, ok := g.drivers[quota]
	if !ok {
		g.made++
		known = newDriver(g, quota, g.made)
		g.drivers[quota] = known
		if g.ended {
			known.machine.Step(g.clock.Now(), machine.End{})
		}
	}
	return known
}

// cause returns the error of a wait that ended, with the store's last error.
func (d *driver) cause(ctx context.Context) error {
	if trouble := d.trouble.Load(); trouble != nil {
		return errors.Join(context.Cause(ctx), trouble.Err)
	}
	return context.Cause(ctx) //nolint:wrapcheck // the caller's own
}
