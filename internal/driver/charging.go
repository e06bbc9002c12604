// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// Reserve charges all quotas, or none: first the quotas that may refuse, in the order of their names. It returns
// Granted once every charge is written. If one isn't granted, it releases the charges before it, and returns that
// decision. It returns ctx's error if that ends first.
func (g *Group) Reserve(ctx context.Context, charges []ledger.Charge) (ledger.Decision, error) {
	patience, until := g.patience(charges), g.clock.Now().Add(admitAfter)
	if len(charges) == 1 {
		return g.reserve(ctx, charges[0], patience, until)
	}
	charges = inOrder(charges)
	for {
		// A charge that another quota is about to refuse would stand in the way
		// of others until it is given back: ask all first.
		decision, err := g.judge(ctx, charges, patience, until)
		judged, ok := decision.(ledger.Granted)
		if err != nil || !ok {
			return decision, err
		}
		decision, err = g.chargeInOrder(ctx, charges, judged, until)
		if _, denied := decision.(ledger.Denied); !denied || err != nil || !g.clock.Now().Before(patience) {
			return decision, err
		}
	}
}

// chargeInOrder charges one quota after the other, in the same order for
// everyone, so that of two requests that want the last room of two quotas one
// gets both. It doesn't wait for room while it holds some, nor again for a ledger
// that was waited for in vain when all were judged.
func (g *Group) chargeInOrder(
	ctx context.Context, charges []ledger.Charge, judged ledger.Granted, until time.Time,
) (ledger.Decision, error) {
	var all ledger.Granted
	for i, charge := range charges {
		if missed := slices.IndexFunc(judged.Remarks, func(r ledger.Remark) bool {
			return r.Unchecked && r.Quota == charge.Limits.Name
		}); missed >= 0 {
			all.Remarks = append(all.Remarks, judged.Remarks[missed])
			continue
		}
		decision, err := g.reserve(ctx, charge, time.Time{}, until)
		granted, ok := decision.(ledger.Granted)
		if err != nil || !ok {
			g.release(charges[:i])
			return decision, err
		}
		all.Remarks = append(all.Remarks, granted.Remarks...)
	}
	return all, nil
}

func (g *Group) reserve(ctx context.Context, charge ledger.Charge, patience, until time.Time) (ledger.Decision, error) {
	return g.ask(ctx, machine.Charge{Charge: charge, Patience: patience}, charge.Reservation.Key(), until)
}

// ask hands a charge to its quota's machine. If that can't decide, a charge that is admitted then is granted without
// a reservation. Until is for how long one is waited for of which nothing is enforced.
func (g *Group) ask(ctx context.Context, asked machine.Charge, reserved ledger.Key, until time.Time) (ledger.Decision, error) {
	limits := asked.Charge.Limits
	asking, cancel := ctx, context.CancelFunc(func() {})
	// A newer spec, which the caller hasn't seen, may enforce limits that this one doesn't, and admit nothing.
	known := g.Current(limits.Name)
	outdated := known.Supersedes(limits)
	enforced := outdated || !limits.Advisory
	if !enforced {
		asking, cancel = context.WithTimeout(ctx, max(until.Sub(g.clock.Now()), admitLeast))
	}
	defer cancel()
	decision, err := g.driver(limits.Name).do(asking, func(id machine.RequestID) machine.Event {
		asked.ID = id
		return asked
	}, reserved)
	// A caller must not get past a limit by a request that can't be stored, or by very many.
	unavailable := errors.Is(err, machine.ErrStore) || errors.Is(err, machine.ErrUnreadable)
	if err == nil || outdated || !asked.Charge.Admits || ctx.Err() != nil || enforced && !unavailable {
		return decision, err
	}
	return ledger.Granted{Remarks: []ledger.Remark{{
		Quota: limits.Name, Unchecked: true, Refusal: ledger.Undecided{
			Quota: limits.Name, Reason: ledger.Unavailable, Detail: err.Error(),
			Resources: slices.Sorted(maps.Keys(asked.Charge.Reservation.Amounts)),
		},
	}}}, nil
}

const (
	// admitAfter is how long a request waits for all ledgers that refuse nothing.
	admitAfter = time.Second
	// admitLeast is how long it waits for each of them at least.
	admitLeast = 50 * time.Millisecond
)

// Judge returns the answer that Reserve would give, and reserves nothing.
func (g *Group) Judge(ctx context.Context, charges []ledger.Charge) (ledger.Decision, error) {
	return g.judge(ctx, inOrder(charges), g.patience(charges), g.clock.Now().Add(admitAfter))
}

func (g *Group) judge(ctx context.Context, charges []ledger.Charge, patience, until time.Time) (ledger.Decision, error) {
	var all ledger.Granted
	for _, charge := range charges {
		decision, err := g.ask(ctx, machine.Charge{Charge: charge, Probe: true, Patience: patience}, ledger.Key{}, until)
		granted, ok := decision.(ledger.Granted)
		if err != nil || !ok {
			return decision, err
		}
		all.Remarks = append(all.Remarks, granted.Remarks...)
	}
	return all, nil
}

// patience returns until when a denial of the charges is withheld.
func (g *Group) patience(charges []ledger.Charge) time.Time {
	patience := g.options.Patience
	for _, charge := range charges {
		patience = min(patience, g.driver(charge.Limits.Name).patience())
	}
	return g.clock.Now().Add(patience)
}

// release gives back charges whose request is known to have failed. It doesn't
// wait: charges that can't be released in time expire.
func (g *Group) release(charges []ledger.Charge) {
	for _, charge := range charges {
		g.driver(charge.Limits.Name).abandon(0, charge.Reservation.Key())
	}
}

// inOrder returns the charges in the order in which they are asked for. No refusal waits for a quota that only advises.
func inOrder(charges []ledger.Charge) []ledger.Charge {
	return slices.SortedFunc(slices.Values(charges), func(a, b ledger.Charge) int {
		switch {
		case a.Limits.Advisory == b.Limits.Advisory:
			return strings.Compare(a.Limits.Name, b.Limits.Name)
		case b.Limits.Advisory:
			return -1
		default:
			return 1
		}
	})
}
