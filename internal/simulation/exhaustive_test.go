// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// small is a world in which every order of possible steps is tried.
type small struct {
	// prepare comes after a cluster with two replicas, a quota of two widgets and one
	// selected namespace has come up.
	prepare []step
	// once are steps of clients, each of which happens at most once, when it can.
	once []step
	// faults are how often each of these may happen.
	faults map[action]int
	depth  int
	// least is how many states there must be.
	least int
	// audits: the quota's mode is Audit.
	audits bool
	// surges: the quota has a surge of one widget.
	surges bool
	// finds is a defect that must be found.
	finds mutation
}

func smallWorlds() map[string]small {
	create := func(id, namespace, name, replica int) step {
		return step{action: beginRequest, a: id, b: namespace*maxNames + name, c: replica}
	}
	const replaces = 2 * ways // in the number of the replica
	race := []step{create(1, 0, 0, 0), create(2, 0, 1, 1), create(3, 0, 2, 1)}
	join := []step{create(1, 1, 0, 0), {action: persistObject, a: 1}, create(2, 1, 1, 0), {action: persistObject, a: 2}}
	full := []step{
		{action: beginUnasked, a: 1}, {action: persistObject, a: 1}, {action: beginUnasked, a: 2, b: 1}, {action: persistObject, a: 2},
		{action: label, a: 1, b: 1},
	}
	return map[string]small{
		"three requests for two places": {once: race, depth: 12, least: 25000, finds: mutation{overwrites: true}},
		"three requests for two places, and replies are lost": {
			once: race, faults: map[action]int{loseCall: 1, effectCall: 1, failRequest: 1}, depth: 7, least: 7000,
			finds: mutation{answersEarly: true},
		},
		"a namespace with objects joins": {
			prepare: join, once: []step{{action: label, a: 1, b: 1}, create(3, 0, 0, 1), create(4, 1, 2, 1)},
			depth: 12, least: 10000, finds: mutation{noKnowledge: true},
		},
		"a limit is lowered": {
			once:  []step{create(1, 0, 0, 1), create(2, 0, 1, 1), {action: beginEdit, a: 3, b: 0, c: 0}},
			depth: 12, least: 1000, finds: mutation{noFence: true},
		},
		"a limit is lowered, and replies are lost": {
			once:   []step{create(1, 0, 0, 1), create(2, 0, 1, 1), {action: beginEdit, a: 3, b: 0, c: 0}},
			faults: map[action]int{failEdit: 1, loseCall: 1, effectCall: 1}, depth: 10, least: 1000, finds: mutation{noFence: true},
		},
		"a ledger is lost while a request is under way": {
			once: []step{
				create(1, maxNamespaces, 0, 0), create(2, maxNamespaces, 1, 0), {action: loseLedger}, {action: loseLedger, b: 1},
				{action: advance, a: 50000},
			},
			depth: 7, least: 14000, finds: mutation{opensEarly: true},
		},
		"a ledger is lost with the fence of a limit that is lowered": {
			prepare: []step{create(1, 0, 0, 0)},
			once:    []step{create(2, 0, 1, 0), {action: beginEdit, a: 3, b: maxQuotas, c: 0}, {action: loseLedger}, {action: advance, a: 65500}},
			depth:   9, least: 39000, finds: mutation{oldGeneration: true},
		},
		"a quota that is full begins to deny": {
			prepare: full, audits: true,
			once:  []step{create(3, 0, 2, 1), create(4, 1, 0, 0), {action: beginEdit, a: 5, b: 0, c: 1}},
			depth: 11, least: 1000, finds: mutation{noModeFence: true},
		},
		"a quota that is full begins to deny, and replies are lost": {
			prepare: full, audits: true,
			once:   []step{create(3, 0, 2, 1), create(4, 1, 0, 0), {action: beginEdit, a: 5, b: 0, c: 1}},
			faults: map[action]int{failEdit: 1, loseCall: 1, effectCall: 1}, depth: 7, least: 1000, finds: mutation{noModeFence: true},
		},
		"two requests for a surge of one, which one of them may take": {
			prepare: full, surges: true,
			once: []step{
				create(3, 0, 2, 1+replaces), create(4, 1, 0, 0), {action: advance, a: 200}, {action: advance, a: 201},
			},
			depth: 11, least: 1000, finds: mutation{plainByMost: true},
		},
		"a surge is removed": {
			prepare: full, surges: true,
			once:  []step{create(3, 0, 2, 1+replaces), {action: beginEdit, a: 4, b: 0, c: 1}, {action: advance, a: 200}},
			depth: 12, least: 900,
		},
		"a place comes free while the leader changes": {
			prepare: full,
			once:    []step{create(3, 0, 2, 0), create(4, 1, 0, 1), {action: deleteObject}, {action: depose, a: 1}},
			depth:   9, least: 1000,
		},
		"an object about which the operator isn't asked takes a place, while the leader changes": {
			prepare: full,
			once: []step{
				{action: deleteObject}, {action: beginUnasked, a: 3, b: 2}, create(4, 1, 0, 1), {action: depose, a: 1},
				{action: relist, a: 0, b: int(countWidgets), c: 4}, {action: relist, a: 1, b: int(countWidgets), c: 3},
			},
			depth: 12, least: 1000, finds: mutation{noTouch: true},
		},
	}
}

// exploration goes through the states of a small world.
type exploration struct {
	small
	mutation mutation
	words    *vocabulary
	seed     maphash.Seed
	// seen is how many steps were left where a state was seen.
	seen   map[uint64]int
	steps  int
	failed string
}

// begin makes the world from scratch and takes the steps.
func (e *exploration) begin(path []step) *schedule {
	shape := shape{replicas: 2, quotas: 1, open: 4, labels: [maxNamespaces]int{0: 1}, hard: [maxQuotas]int{1}, modes: e.audits}
	if shape.surges = e.surges; e.surges {
		shape.hard[0] += hards
	}
	s := &schedule{world: newWorld(e.words, shape, e.mutation), random: rand.New(rand.NewPCG(1, 1))}
	s.world.remembers = true
	s.setUp()
	for _, step := range e.prepare {
		s.world.do(step)
		e.quicken(s)
	}
	s.settle()
	for _, step := range path {
		e.make(s, step)
	}
	return s
}

// make makes a step. The events of a watch of ledgers are merged, as by a work queue.
func (e *exploration) make(s *schedule, step step) {
	s.world.do(step)
	if step.action == deliverWatch && kind(step.b) == watchLedgers {
		for replica := s.world.replicas[step.a]; replica.pending(watchLedgers); {
			replica.deliver(watchLedgers)
		}
	}
	e.quicken(s)
}

// quicken makes at once the steps that concern one front end alone, and those that are due.
func (e *exploration) quicken(s *schedule) {
	weights := [actions]int{takeRead: 1, goOnRequest: 1, answerRequest: 1, noticeLeft: 1, goOnEdit: 1, learnNamespaces: 1, beginTask: 1, goOnTask: 1, tick: 1}
	for {
		s.chooser.reset(s.world, &weights)
		s.chooser.progress()
		if len(s.chooser.choices) == 0 {
			return
		}
		s.world.do(s.chooser.choices[0].step)
	}
}

// next returns the steps that may happen next.
func (e *exploration) next(s *schedule, path []step) []step {
	weights := [actions]int{replyCall: 1, deliverWatch: 1, persistObject: 1, persistEdit: 1, takeProof: 1}
	for fault, times := range e.faults {
		for _, step := range path {
			if step.action == fault {
				times--
			}
		}
		weights[fault] = max(times, 0)
	}
	s.chooser.reset(s.world, &weights)
	s.chooser.progress()
	var next []step
	for _, choice := range s.chooser.choices {
		next = append(next, choice.step)
	}
	for _, client := range e.once {
		made := false
		for _, step := range path {
			made = made || step.same(client)
		}
		if !made && e.canHappen(s.world, client) {
			next = append(next, client)
		}
	}
	return next
}

// canHappen reports whether a client's step is possible now.
func (*exploration) canHappen(w *world, client step) bool {
	switch client.action {
	case deleteObject:
		return w.objectAt(place{client.a, client.b, client.c}) != nil
	case loseLedger:
		return w.ledgers.newest[client.a] != nil
	case relist:
		return w.replicas[client.a].pending(kind(client.b)) && client.c <= w.length(kind(client.b))
	case depose:
		return w.replicas[client.a].counter == nil
	case crash:
		return w.leader != client.a && w.replicas[client.a].alive
	default:
		return true
	}
}

func (e *exploration) visit(s *schedule, path []step) {
	if s.world.failure != nil {
		e.failed = fmt.Sprintf("%s\n%v", s.world.failure.message, path)
		return
	}
	left, key := e.depth-len(path), s.world.hash(e.seed)
	if known, ok := e.seen[key]; ok && known >= left {
		return
	}
	e.seen[key] = left
	if left == 0 {
		e.finish(s, path, key)
		return
	}
	for n, next := range e.next(s, path) {
		if e.failed != "" {
			return
		}
		further := slices.Concat(path, []step{next})
		if n > 0 {
			s = e.begin(path)
		}
		e.make(s, next)
		e.steps++
		e.visit(s, further)
	}
}

// finish lets the cluster come to rest from some of the states at the end.
func (e *exploration) finish(s *schedule, path []step, key uint64) {
	if key%16 != 0 {
		return
	}
	s.settle()
	if s.world.failure == nil {
		s.world.checkStill()
	}
	if s.world.failure != nil {
		e.failed = fmt.Sprintf("%s\n%v", s.world.failure.message, path)
	}
}

// hash tells states apart. Counts are told apart by how far their watches have come.
func (w *world) hash(seed maphash.Seed) uint64 {
	h := newHashing(seed)
	add := func(values ...any) {
		for _, value := range values {
			h.value(reflect.ValueOf(value))
		}
	}
	add(w.now, w.revision, w.leader, w.knownNamespaces, w.loaded, len(w.orphans), w.written, w.ledgers.newest)
	for _, r := range w.replicas {
		add(r.alive, r.streams, r.memory, r.counter != nil)
		for _, driver := range r.all() {
			add(driver.machine, driver.released, driver.sleeping, driver.wakeAt, driver.call != nil)
			if driver.call != nil {
				add(driver.call.done, driver.call.swap, driver.call.result)
			}
		}
	}
	for _, request := range w.requests {
		add(request.id, request.status, request.stage, request.left, request.search, request.step, request.read, request.knowledge,
			request.facts.Last, request.facts.Outcome, request.facts.Again, request.facts.Patience, request.facts.Began, request.facts.Waivers,
			request.until, request.charging.at, request.charging.probing, request.limit, request.most, request.proof,
			request.facts.Proved, request.facts.Replaces)
	}
	for _, edit := range w.edits {
		add(edit.id, edit.stage, edit.revision, edit.tries)
	}
	return h.Sum64()
}

func flag(set bool) uint64 {
	if set {
		return 1
	}
	return 0
}

func TestEveryOrder(t *testing.T) {
	for name, small := range smallWorlds() {
		t.Run(name, func(t *testing.T) {
			if raceEnabled {
				small.depth, small.least, small.finds = small.depth-4, 0, noMutation()
			}
			e := explored(small, noMutation())
			if e.failed != "" {
				t.Error(e.failed)
			}
			t.Logf("%d states, %d steps, in every order of up to %d", len(e.seen), e.steps, e.depth)
			if len(e.seen) < e.least {
				t.Errorf("%d states are fewer than %d", len(e.seen), e.least)
			}
			if small.finds == noMutation() {
				return
			}
			mutated := explored(small, small.finds)
			if mutated.failed == "" {
				t.Errorf("a defect was not found in %d states", len(mutated.seen))
			}
			t.Logf("a defect was found in %d states: %s", len(mutated.seen), mutated.failed)
		})
	}
}

func explored(small small, mutation mutation) *exploration {
	e := &exploration{small: small, mutation: mutation, words: newVocabulary(), seed: maphash.MakeSeed(), seen: map[uint64]int{}}
	e.visit(e.begin(nil), nil)
	return e
}
