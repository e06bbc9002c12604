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
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// ErrBusy is returned when too many charges wait for one quota already.
var ErrBusy = errors.New("too many requests wait for this quota")

// Group commits to the ledgers of all quotas. Its methods may be called
// concurrently.
type Group struct {
	// ctx ends the goroutines of all committers.
	ctx      context.Context //nolint:containedctx // the owner's, for goroutines that outlive each call
	clock    clock.Clock
	store    Store
	options  Options
	observer Observer

	running sync.WaitGroup
	// mu guards what follows, and each start of a goroutine in running.
	mu sync.Mutex
	// ended: Wait was called, and no goroutine may start any more.
	ended bool
	// quota name -> committer
	committers map[string]*committer
}

// ErrEnded is returned once the Group has ended.
var ErrEnded = errors.New("the operator is stopping")

// New makes a Group that works until ctx ends.
func New(ctx context.Context, clock clock.Clock, store Store, observer Observer, options Options) *Group {
	return &Group{
		ctx: ctx, clock: clock, store: store, options: options, observer: observer,
		committers: map[string]*committer{},
	}
}

// Reserve charges all quotas or none. It returns Granted when every charge has
// been written; otherwise the first decision, in order of quota names, that is
// not, after giving back what had been charged before it. It returns ctx's
// error when that ends first.
func (g *Group) Reserve(ctx context.Context, charges []Charge) (ledger.Decision, error) {
	charges = slices.SortedFunc(slices.Values(charges), func(a, b Charge) int {
		return strings.Compare(a.Limits.Name, b.Limits.Name)
	})
	// A charge that another quota is about to refuse would stand in the way of
	// others until it is given back: ask all first.
	if len(charges) > 1 {
		if decision, err := g.Judge(ctx, charges); err != nil || !isGranted(decision) {
			return decision, err
		}
	}
	for i, charge := range charges {
		decision, err := g.submit(ctx, charge.Limits.Name, newCharge(ctx, charge, false))
		if err != nil || !isGranted(decision) {
			g.release(ctx, charges[:i])
			return decision, err
		}
	}
	return ledger.Granted{}, nil
}

// Judge tells what Reserve would answer, and reserves nothing.
func (g *Group) Judge(ctx context.Context, charges []Charge) (ledger.Decision, error) {
	for _, charge := range charges {
		decision, err := g.submit(ctx, charge.Limits.Name, newCharge(ctx, charge, true))
		if err != nil || !isGranted(decision) {
			return decision, err
		}
	}
	return ledger.Granted{}, nil
}

// Apply writes a change to one quota's ledger together with whatever waits
// there, and returns once it is stored, or changes nothing.
func (g *Group) Apply(ctx context.Context, quota string, change Change) error {
	_, err := g.submit(ctx, quota, newChange(ctx, change))
	return err
}

// Release gives back charges whose request is known to have failed. It doesn't
// wait: what can't be written in time expires.
func (g *Group) release(ctx context.Context, charges []Charge) {
	for _, charge := range charges {
		g.committer(charge.Limits.Name).release(ctx, charge.Reservation.Key())
	}
}

// Observe tells the Group of a ledger that was seen in the store, so that the
// next batch is judged on it.
func (g *Group) Observe(quota string, snapshot Snapshot) {
	g.committer(quota).observe(snapshot)
}

// Gone tells the Group that a quota's ledger was seen to be missing from the
// store. What was in flight stays reserved in the one that is made next.
func (g *Group) Gone(quota string) {
	g.committer(quota).gone()
}

// Current returns the newest ledger that this process knows, which may be
// older than what is stored.
func (g *Group) Current(quota string) ledger.State {
	return g.committer(quota).current().State
}

// Forget drops what is known of a quota that is gone. Charges that wait are
// still answered.
func (g *Group) Forget(quota string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.committers, quota)
}

// Wait returns when all committers have ended. Call it after ctx has ended.
func (g *Group) Wait() {
	g.mu.Lock()
	g.ended = true
	g.mu.Unlock()
	g.running.Wait()
}

// start runs work in a goroutine, unless the Group has ended.
func (g *Group) start(work func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.ended {
		g.running.Go(work)
	}
	return !g.ended
}

func (g *Group) committer(quota string) *committer {
	g.mu.Lock()
	defer g.mu.Unlock()
	known, ok := g.committers[quota]
	if !ok {
		known = &committer{group: g, quota: quota}
		g.committers[quota] = known
	}
	return known
}

// submit queues the entry and waits for its outcome. A charge whose waiter
// gives up is released: it may have been written, or may yet be.
func (g *Group) submit(ctx context.Context, quota string, entry *entry) (ledger.Decision, error) {
	committer := g.committer(quota)
	if err := committer.enqueue(entry); err != nil {
		return nil, fmt.Errorf("charging quota %s: %w", quota, err)
	}
	select {
	case <-entry.done:
		return entry.decision, entry.err
	case <-ctx.Done():
	}
	if entry.charge != nil && !entry.probe {
		committer.release(ctx, entry.charge.Reservation.Key())
	}
	return nil, fmt.Errorf("waiting for quota %s: %w", quota, errors.Join(context.Cause(ctx), committer.failure()))
}

func isGranted(decision ledger.Decision) bool {
	_, granted := decision.(ledger.Granted)
	return granted
}
