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
	"time"

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

// errGaveUp says that the outcome isn't known.
var errGaveUp = errors.New("waiting")

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
	patience := g.patience(charges)
	if len(charges) == 1 {
		return g.submit(ctx, newCharge(ctx, charges[0], patience))
	}
	charges = byQuota(charges)
	for {
		// A charge that another quota is about to refuse would stand in the way
		// of others until it is given back: ask all first.
		decision, err := g.judge(ctx, charges, patience)
		if err != nil || !isGranted(decision) {
			return decision, err
		}
		decision, err = g.chargeInOrder(ctx, charges)
		if _, denied := decision.(ledger.Denied); !denied || err != nil || !g.clock.Now().Before(patience) {
			return decision, err
		}
	}
}

// chargeInOrder charges one quota after the other, in the same order for
// everyone, so that of two requests that want the last room of two quotas one
// gets both. It doesn't wait for room while it holds some.
func (g *Group) chargeInOrder(ctx context.Context, charges []Charge) (ledger.Decision, error) {
	for i, charge := range charges {
		decision, err := g.submit(ctx, newCharge(ctx, charge, time.Time{}))
		if err != nil || !isGranted(decision) {
			g.release(ctx, charges[:i])
			return decision, err
		}
	}
	return ledger.Granted{}, nil
}

// Judge tells what Reserve would answer, and reserves nothing.
func (g *Group) Judge(ctx context.Context, charges []Charge) (ledger.Decision, error) {
	return g.judge(ctx, byQuota(charges), g.patience(charges))
}

// patience returns until when a denial of the charges is withheld.
func (g *Group) patience(charges []Charge) time.Time {
	patience := g.options.Patience
	for _, charge := range charges {
		patience = min(patience, g.committer(charge.Limits.Name).patience())
	}
	return g.clock.Now().Add(patience)
}

func (g *Group) judge(ctx context.Context, charges []Charge, patience time.Time) (ledger.Decision, error) {
	for _, charge := range charges {
		decision, err := g.submit(ctx, newProbe(ctx, charge, patience))
		if err != nil || !isGranted(decision) {
			return decision, err
		}
	}
	return ledger.Granted{}, nil
}

func byQuota(charges []Charge) []Charge {
	return slices.SortedFunc(slices.Values(charges), func(a, b Charge) int {
		return strings.Compare(a.Limits.Name, b.Limits.Name)
	})
}

// Apply writes a change to one quota's ledger together with whatever waits
// there, and returns once it is stored, or changes nothing. Where there is no
// ledger to change, it is lost.
func (g *Group) Apply(ctx context.Context, quota string, change Change) error {
	_, err := g.wait(ctx, g.committer(quota), newChange(ctx, change))
	return err
}

// ApplyLater is Apply for a change that may make room, or not: as long as canWait
// says of the newest ledger known that it makes none, it waits for others to share
// a write with, for some paces at most. What canWait says besides may change at any
// time; when it does, call Hurry. It must not call the Group.
func (g *Group) ApplyLater(ctx context.Context, quota string, change Change, canWait func(ledger.State) bool) error {
	entry := newChange(ctx, change)
	entry.canWait = canWait
	_, err := g.wait(ctx, g.committer(quota), entry)
	return err
}

// Hurry has the changes that wait asked again whether they can.
func (g *Group) Hurry(quota string) {
	g.committer(quota).hurry()
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

// Knows tells whether the Group knows a quota's ledger of this version or of a
// newer one.
func (g *Group) Knows(quota, version string) bool {
	known := g.committer(quota).current().Version
	return known != "" && !g.store.Newer(version, known)
}

// Replace stores a ledger in place of the one at version previous; with previous
// empty, where there is none. No batch makes a ledger or writes over one that was
// edited. Whoever does it here answers for what is in flight.
func (g *Group) Replace(ctx context.Context, quota, previous string, state ledger.State) (string, error) {
	version, err := g.store.Swap(ctx, quota, previous, state)
	if err != nil {
		return "", fmt.Errorf("replacing the ledger of quota %s: %w", quota, err)
	}
	g.committer(quota).replaced(Snapshot{Version: version, State: state})
	return version, nil
}

// Gone tells the Group that a quota's ledger was seen to be missing from the
// store.
func (g *Group) Gone(quota string) {
	g.committer(quota).gone()
}

// Current returns the newest ledger that this process knows, which may be
// older than what is stored.
func (g *Group) Current(quota string) ledger.State {
	return g.committer(quota).current().State
}

// Forget drops what is known of a quota that is gone. Charges that wait are
// still answered. The observer isn't told of them.
func (g *Group) Forget(quota string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if known, ok := g.committers[quota]; ok {
		known.forget()
		delete(g.committers, quota)
	}
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
		known = newCommitter(g, quota)
		g.committers[quota] = known
	}
	return known
}

// submit queues a charge or a probe and waits for its outcome. A charge whose
// waiter gives up is released: it may have been written, or may yet be.
func (g *Group) submit(ctx context.Context, entry *entry) (ledger.Decision, error) {
	committer := g.committer(entry.charge.Limits.Name)
	decision, err := g.wait(ctx, committer, entry)
	if errors.Is(err, errGaveUp) && !entry.probe {
		committer.release(ctx, entry.charge.Reservation.Key())
	}
	return decision, err
}

// wait queues the entry and returns its outcome.
func (g *Group) wait(ctx context.Context, committer *committer, entry *entry) (ledger.Decision, error) {
	if err := committer.enqueue(entry); err != nil {
		return nil, fmt.Errorf("charging quota %s: %w", committer.quota, err)
	}
	select {
	case <-entry.done:
		return entry.decision, entry.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w for quota %s: %w", errGaveUp, committer.quota,
			errors.Join(context.Cause(ctx), committer.failure()))
	}
}

func isGranted(decision ledger.Decision) bool {
	_, granted := decision.(ledger.Granted)
	return granted
}
