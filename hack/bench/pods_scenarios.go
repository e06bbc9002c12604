// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ageTurns is how many turns the one takes that isn't measured: in those of 4 s the API server comes to remember as many events
// as it ever does.
const ageTurns = 10

// scenario is one thing to measure, in turns.
type scenario struct {
	name string
	run  func(ctx context.Context, w *podsWorld, rounds int, into *results) error
}

// unlimited is a limit that no turn reaches.
const unlimited = "100M"

func scenarios(duration time.Duration) []scenario {
	few := []variant{variantAllow, variantNative, variantDouble}
	all := []variant{variantNothing, variantAllow, variantNative, variantSingle, variantDouble}
	pair := []variant{variantAllow, variantDouble}
	create := func(clients int) load { return load{clients: clients, namespaces: clients, duration: duration} }
	// The API server collects garbage for some seconds of every five to ten.
	long := func(clients int) load { return load{clients: clients, namespaces: clients, duration: 2 * duration} }
	return []scenario{
		turns(one, few, long(1)),
		turns(ten, few, long(10)),
		turns(hundred, all, long(100)),
		turns(many, pair, create(1000)),
		turns(idle, pair, load{clients: 1, namespaces: 1, duration: duration, think: 50 * time.Millisecond}),
		atOnce(newTen, few, create(10)),
		atOnce(newHundred, few, create(100)),
		turns(trying, []variant{variantDouble, variantTried}, create(10)),
		exhausted(duration),
		{freed, measureRegrant},
		{churned, measureChurn},
		turns(applied, []variant{variantOff, variantWarn},
			load{clients: 1, namespaces: 1, duration: duration, workloads: true}),
		turns(appliedByTen, []variant{variantOff, variantWarn, variantAllow},
			load{clients: 10, namespaces: 10, duration: duration, workloads: true}),
		{"commits of a ledger", measureCommits},
	}
}

// The names of the scenarios. Each client has a namespace of its own.
const (
	one          = "1 client"
	ten          = "10 clients"
	hundred      = "100 clients"
	many         = "1000 clients"
	idle         = "a client that pauses"
	newTen       = "a new quota, 10 clients"
	newHundred   = "a new quota, 100 clients"
	trying       = "10 clients, and a second quota in mode Audit"
	full         = "exhausted quota, 100 clients"
	freed        = "a freed place granted elsewhere"
	churned      = "churn at the limit"
	applied      = "Deployments, 1 client"
	appliedByTen = "Deployments, 10 clients"
)

// turns has each variant in turn bear the load.
func turns(name string, variants []variant, l load) scenario {
	return scenario{name, func(ctx context.Context, w *podsWorld, rounds int, into *results) error {
		return takeTurns(ctx, w, name, rounds, variants, into, func(variant) (setup, load) {
			return setup{namespaces: l.namespaces, pods: unlimited}, l
		})
	}}
}

// atOnce has the quota made in each turn, over namespaces that are new, too. The load begins as soon as the quota is
// enforced, and is measured from then on, for two turns' time because it isn't steady.
func atOnce(name string, variants []variant, l load) scenario {
	l.cold, l.duration = true, 2*l.duration
	return scenario{name, func(ctx context.Context, w *podsWorld, rounds int, into *results) error {
		return takeTurns(ctx, w, name, rounds, variants, into, func(variant) (setup, load) {
			return setup{namespaces: l.namespaces, pods: unlimited, fresh: true}, l
		})
	}}
}

// exhausted has quotas refuse everything. The floor is a webhook that refuses everything without a look.
func exhausted(duration time.Duration) scenario {
	return scenario{full, func(ctx context.Context, w *podsWorld, rounds int, into *results) error {
		variants := []variant{variantRefuse, variantNative, variantDouble}
		return takeTurns(ctx, w, full, rounds, variants, into, func(variant) (setup, load) {
			l := load{clients: 100, namespaces: 100, duration: duration, refused: true}
			return setup{namespaces: l.namespaces, pods: "0"}, l
		})
	}}
}

func takeTurns(
	ctx context.Context, w *podsWorld, name string, rounds int, variants []variant, into *results, with func(variant) (setup, load),
) error {
	variants = slices.Clone(variants)
	if i := slices.IndexFunc(variants, func(v variant) bool { return v.name == double }); i >= 0 && w.compare != "" {
		variants = slices.Insert(variants, i, variantOther)
	}
	variants = slices.DeleteFunc(variants, func(v variant) bool { return !w.variants.MatchString(v.name) })
	for round := range rounds {
		for i := range variants {
			// Each round begins with another variant, so that none is always first.
			v := variants[(i+round)%len(variants)]
			setup, load := with(v)
			measured, err := w.turn(ctx, v, setup, load)
			if err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
			into.add(name, v.name, measured)
		}
	}
	return nil
}

// age has a turn that isn't measured. An API server that was just started answers faster, because its heap is small, so the
// variants of its first turns would be ahead.
func (w *podsWorld) age(ctx context.Context, turn time.Duration) error {
	const clients = 100
	l := load{clients: clients, namespaces: clients, duration: ageTurns * turn}
	err := w.during(ctx, variantAllow, setup{namespaces: clients}, clients, func(running *running) error {
		_, err := l.apply(ctx, w, &meter{world: w, running: running, quick: true})
		return err
	})
	if err != nil {
		return fmt.Errorf("the turn that isn't measured: %w", err)
	}
	return nil
}

// turn measures a variant under the load.
func (w *podsWorld) turn(ctx context.Context, v variant, s setup, l load) (measured turn, err error) {
	err = w.during(ctx, v, s, l.clients, func(running *running) error {
		meter := &meter{world: w, running: running, quick: l.cold, what: v.name, long: l.duration}
		sample, err := l.apply(ctx, w, meter)
		if err != nil {
			return err
		}
		measured, err = meter.turn(ctx, sample)
		return err
	})
	return measured, err
}

// withOperator runs measure in each round with each number of replicas.
func withOperator(ctx context.Context, w *podsWorld, rounds int, s setup, measure func(v variant) error) error {
	for range rounds {
		for _, v := range []variant{variantSingle, variantDouble} {
			err := w.during(ctx, v, s, clientsPerConnection, func(*running) error { return measure(v) })
			if err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
		}
	}
	return nil
}

// during starts a variant, and stops it when do has returned.
func (w *podsWorld) during(ctx context.Context, v variant, s setup, clients int, do func(*running) error) (err error) {
	if s.fresh {
		back := w.renew()
		defer back()
	}
	if err := w.ensure(ctx, s.namespaces, clients); err != nil {
		return err
	}
	running, err := v.start(ctx, w, s)
	defer func() {
		// However ctx ended: nothing may be left to the next turn.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*settleTimeout)
		defer cancel()
		err = errors.Join(err, running.stop(ctx), w.clear(ctx))
	}()
	if err != nil {
		return err
	}
	return do(running)
}
