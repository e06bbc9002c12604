// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math/rand/v2"
	"time"
)

// shape is the kind of a schedule.
type shape struct {
	seed     uint64
	replicas int
	offsets  [3]time.Duration
	quotas   int
	// open is how many requests may be under way.
	open    int
	length  int
	weights [actions]int
	// slow are watches that rarely show anything.
	slow [3][kinds]bool
	// sluggish are replicas whose timers rarely fire.
	sluggish [3]bool
	labels   [maxNamespaces]int
	hard     [maxQuotas]int
	// spare is added to each limit.
	spare int
	// calm: nothing is disturbed. disturbed is when something last was.
	calm      bool
	disturbed time.Time
	// modes: quotas change between Deny and Audit.
	modes bool
	// surges: quotas have surge, and some objects replace others.
	surges bool
	// grows: while nothing is disturbed, objects only come.
	grows bool
}

// usually is how likely each action is where nothing else is said.
func usually() [actions]int {
	weights := [actions]int{}
	for action := range beginRequest {
		weights[action] = 10
	}
	weights[startReplica], weights[elect], weights[dropOrphan] = 5, 5, 1
	weights[beginRequest], weights[deleteObject], weights[label], weights[beginEdit] = 40, 2, 1, 2
	weights[createNamespace], weights[createQuota] = 5, 5
	weights[advance] = 6
	return weights
}

// faults are the steps that may be added, and how likely they are.
func faults() map[action]int {
	return map[action]int{
		growUnasked: 2, beginUnasked: 5, deleteNamespace: 1, deleteQuota: 1, label: 4, deleteObject: 6, beginEdit: 12,
		failRead: 4, loseAnswer: 4, leave: 2, failRequest: 5, effectCall: 10, loseCall: 3, forgetCall: 3,
		relist: 2, takeOrphan: 3, loseTask: 2, unhearTask: 2, loseWriting: 2, crash: 1, depose: 2,
		stopServing: 1, loseLedger: 2, deleteConfiguration: 1, failEdit: 10,
	}
}

// newShape draws a shape, of a theme unless that is zero.
func newShape(seed uint64, theme int, random *rand.Rand) shape {
	s := shape{seed: seed, weights: usually(), replicas: 2, quotas: 1 + random.IntN(2), open: 2 + random.IntN(4), length: 50 + random.IntN(70)}
	if random.IntN(5) == 0 {
		s.replicas = 3
	}
	if random.IntN(3) == 0 {
		for n := range s.offsets {
			s.offsets[n] = time.Duration(random.Int64N(int64(2*mostWrong))) - mostWrong
		}
	}
	likely := faults()
	for action := range actions {
		if weight, ok := likely[action]; ok && random.IntN(3) == 0 {
			s.weights[action] = weight
		}
	}
	// Some watches are silent for long in some schedules, and some objects take long.
	if random.IntN(2) == 0 {
		for n := range s.slow {
			for kind := range s.slow[n] {
				s.slow[n][kind] = random.IntN(4) == 0
			}
		}
	}
	if random.IntN(4) == 0 {
		s.weights[persistObject] = 1
	}
	if random.IntN(4) == 0 {
		s.weights[learnNamespaces] = 2
	}
	for n := range s.labels {
		s.labels[n] = random.IntN(1 << maxQuotas)
	}
	switch all := themes(); {
	case theme > 0:
		all[theme-1](&s)
	case seed&withSurge != 0 && seed%4 == 1:
		all[10](&s)
	case seed&withEscrow != 0 && seed%4 == 3:
		all[8-int(seed>>2%2)](&s)
	case seed%16 == 12: // not by a draw, so that kept seeds keep their schedules
		all[drawnThemes](&s)
	case random.IntN(2) == 0:
		all[random.IntN(drawnThemes)](&s)
	}
	if seed&withEscrow != 0 && random.IntN(3) > 0 { // room for some escrow, and requests to take it
		s.spare, s.open = 1+random.IntN(4), s.open+2
		s.weights[beginRequest], s.weights[advance] = 80, 3
	}
	if s.modes = seed&withModes != 0; s.modes {
		s.weights[beginEdit], s.weights[goOnEdit], s.weights[persistEdit] = 12, 30, 30
		s.grows = seed%2 == 0
	}
	if s.surges = seed&withSurge != 0; s.surges {
		s.weights[failProof] = 6
		if seed%2 == 0 {
			s.weights[beginEdit], s.weights[goOnEdit], s.weights[persistEdit] = 12, 30, 30
		}
	}
	if seed&withRestores != 0 {
		s.weights[backUp], s.weights[restoreBackup] = 4, 8
	}
	s.labels[0] |= 1
	s.labels[random.IntN(maxNamespaces)] |= 1
	for q := range s.hard {
		s.hard[q] = random.IntN(hards)
	}
	if s.surges {
		for q := range s.hard {
			s.hard[q] += hards * random.IntN(surges)
		}
	}
	return s
}

// drawnThemes are how many of the themes are drawn.
const drawnThemes = 6

// themes make rare coincidences likely: each has little in it but the steps that they take.
func themes() []func(*shape) {
	only := func(s *shape, weights map[action]int) {
		for fault := range faults() {
			s.weights[fault] = 0
		}
		for action, weight := range weights {
			s.weights[action] = weight
		}
	}
	return []func(*shape){
		func(s *shape) { // a ledger is lost while much is in flight
			only(s, map[action]int{loseLedger: 6, persistObject: 1, goOnTask: 40, beginTask: 40, advance: 2, failRequest: 1})
		},
		func(s *shape) { // namespaces come and go, and a replica doesn't see it
			only(s, map[action]int{label: 12, deleteObject: 1, advance: 2, learnNamespaces: 15})
			for n := range s.slow {
				s.slow[n][watchNamespaces] = true
			}
		},
		func(s *shape) { // leaders change, and each has seen something else
			only(s, map[action]int{
				beginUnasked: 20, deleteObject: 16, depose: 4, relist: 10, persistObject: 40, advance: 2, deliverWatch: 12,
				replyCall: 4, tick: 20,
			})
			for n := range s.slow {
				s.slow[n][countWidgets], s.slow[n][countClaims] = n == 1, n == 1
			}
			s.quotas = 1
		},
		func(s *shape) { // objects are counted only after a reservation's life
			only(s, map[action]int{deleteObject: 2, advance: 10, persistObject: 20, beginTask: 20, goOnTask: 20})
			for n := range s.slow {
				s.slow[n][countWidgets], s.slow[n][countClaims] = true, true
			}
		},
		func(s *shape) { // limits go up and down
			only(s, map[action]int{beginEdit: 25, failEdit: 10, deleteObject: 8, deleteQuota: 1, advance: 2})
			for n := range s.slow {
				s.slow[n][watchQuotas], s.slow[n][watchLedgers] = n > 0, n > 0
			}
		},
		func(s *shape) { // namespaces join with objects in them, and the leader hears of objects late
			only(s, map[action]int{
				label: 8, beginUnasked: 30, deleteObject: 1, advance: 1, deleteNamespace: 0, createNamespace: 0, deleteQuota: 0, beginEdit: 0,
				persistObject: 60, replyCall: 60, tick: 60, deliverWatch: 60, learnNamespaces: 60, beginTask: 60, goOnTask: 60,
			})
			for n := range s.slow {
				s.slow[n] = [kinds]bool{countWidgets: true, countClaims: true}
			}
			s.quotas = 1
		},
		func(s *shape) { // namespaces join and leave while leaders change, and each has seen something else
			only(s, map[action]int{
				label: 8, beginUnasked: 30, deleteObject: 4, advance: 1, deleteNamespace: 0, createNamespace: 0, deleteQuota: 0, beginEdit: 1,
				depose: 4, relist: 8, stopServing: 1, persistObject: 60, replyCall: 40, tick: 60, deliverWatch: 40, learnNamespaces: 60,
				beginTask: 60, goOnTask: 60,
			})
			for n := range s.slow {
				s.slow[n] = [kinds]bool{countWidgets: n == 1, countClaims: n == 1, countNamespaces: n == 0}
			}
			s.quotas = 1
		},
		func(s *shape) { // limits go down, and holders of escrow hear of it late
			only(s, map[action]int{
				beginEdit: 4, deleteQuota: 0, deleteObject: 1, advance: 8, beginRequest: 60, loadConfiguration: 1, goOnEdit: 60, persistEdit: 60,
				replyCall: 60, tick: 60, takeRead: 40, goOnRequest: 60, answerRequest: 60, persistObject: 60,
			})
			for n := range s.slow {
				s.slow[n], s.sluggish[n] = [kinds]bool{watchLedgers: n > 0, watchQuotas: n > 0}, n > 0
			}
			s.quotas, s.open = 1, 6
		},
		func(s *shape) { // holders of escrow are gone, and objects that were granted from it come late
			only(s, map[action]int{
				crash: 3, deleteObject: 4, advance: 8, beginRequest: 60, persistObject: 2, beginEdit: 0, deleteQuota: 0, label: 0, beginTask: 20,
				goOnTask: 20,
			})
			for n := range s.slow {
				s.slow[n] = [kinds]bool{countWidgets: true, countClaims: true}
			}
			s.quotas, s.open = 1, 8
		},
		func(s *shape) { // a leader lists namespaces as they were, and hears nothing of them for long
			only(s, map[action]int{
				label: 8, depose: 4, relist: 20, advance: 10, deleteNamespace: 0, createNamespace: 0, deleteQuota: 0, beginEdit: 0,
				replyCall: 60, tick: 60, deliverWatch: 60, beginTask: 60, goOnTask: 60,
			})
			for n := range s.slow {
				s.slow[n] = [kinds]bool{countNamespaces: true}
			}
			s.quotas = 1
		},
		// Surges go up and down, and replicas hear of it late. A quota that denies a charge
		// is known to be behind, unless its version was read a moment ago. So the surge
		// of one matters if another one denies, and leads to the proof.
		func(s *shape) {
			only(s, map[action]int{
				beginEdit: 10, beginRequest: 60, deleteQuota: 0, deleteObject: 2, label: 0, advance: 12, loadConfiguration: 1, goOnEdit: 60, persistEdit: 60,
				replyCall: 60, tick: 60, takeRead: 60, takeProof: 60, failProof: 10, goOnRequest: 60, answerRequest: 60, persistObject: 40,
			})
			for n := range s.slow {
				s.slow[n], s.labels[n] = [kinds]bool{watchLedgers: n > 0, watchQuotas: n > 0}, 1<<maxQuotas-1
			}
			s.quotas, s.open = 2, 5
		},
	}
}

// schedule is one run.
type schedule struct {
	world   *world
	random  *rand.Rand
	chooser chooser
	steps   []step
	ids     int
}

func newSchedule(words *vocabulary, seed uint64, mutation mutation, trace *trace) *schedule {
	random := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	shape := newShape(seed, mutation.theme, random)
	s := &schedule{world: newWorld(words, shape, mutation), random: random}
	s.world.trace = trace
	return s
}

// setUp lets a small cluster come up.
func (s *schedule) setUp() {
	w := s.world
	for n, labels := range w.shape.labels {
		w.setNamespace(n, labels)
	}
	for q := range w.shape.quotas {
		w.createQuota(q, w.hardOf(w.shape.hard[q]), w.surgeOf(w.shape.hard[q]), w.shape.modes && w.shape.hard[q]%2 == 1)
	}
	s.settle()
}

// disturb makes random steps.
func (s *schedule) disturb() {
	w := s.world
	for range w.shape.length {
		if w.failure != nil {
			return
		}
		s.make(s.choose())
	}
}

// drawHard returns the number of limits, and of a surge.
func (w *world) drawHard(drawn uint64) int {
	hard := int(drawn % hards)
	if w.shape.surges {
		hard += hards * int(drawn>>48%surges)
	}
	return hard
}

func (s *schedule) make(next step) {
	s.steps = append(s.steps, next)
	s.world.do(next)
}

func (s *schedule) choose() step {
	w := s.world
	s.ids++
	s.chooser.reset(w, &w.shape.weights)
	s.chooser.progress()
	drawn := s.random.Uint64()
	s.chooser.clients(s.ids, w.drawHard(drawn), int(drawn>>8%4096))
	s.chooser.add(advance, []int{20, 50, 200, 1000, 5000, 30000, 100000}[drawn>>24%7], 0, 0)
	next := s.pick(s.random.IntN(s.chooser.total))
	next.after = []int{0, 0, 1, 1, 2, 5, 15}[drawn>>32%7]
	return next
}

// settle lets the cluster come to rest without disturbance: steps that are due happen at once, in
// the same order, and then time passes until another step is due.
func (s *schedule) settle() {
	w := s.world
	for range 3000 {
		if w.failure != nil {
			return
		}
		if s.undisturbed() {
			continue
		}
		w.checkLearning()
		next := w.nextWake()
		if next.IsZero() {
			return
		}
		w.pass(max(next.Sub(w.now), 0) + time.Millisecond)
	}
	w.failf("the cluster doesn't come to rest")
}

// undisturbed makes the step that an undisturbed cluster makes next, and reports false if
// it has to wait.
func (s *schedule) undisturbed() bool {
	w := s.world
	if w.unserved {
		w.unserved = false
	}
	for _, replica := range w.replicas {
		if replica.counter != nil && w.leader != replica.id {
			w.do(step{action: crash, a: replica.id})
			return true
		}
	}
	weights := [actions]int{}
	for action := range beginRequest {
		weights[action] = 1
	}
	s.chooser.reset(w, &weights)
	s.chooser.progress()
	if len(s.chooser.choices) == 0 {
		return false
	}
	first := s.chooser.choices[0].step
	for _, choice := range s.chooser.choices {
		if choice.step.action < first.action {
			first = choice.step
		}
	}
	w.counts.settling++
	w.do(first)
	if first.action == deliverWatch {
		for replica := w.replicas[first.a]; w.failure == nil && replica.pending(kind(first.b)); {
			w.do(first)
		}
	}
	if w.counts.settling%4 == 0 {
		w.pass(time.Millisecond)
	}
	return true
}

// nextWake returns when something is due next; zero for never.
func (w *world) nextWake() time.Time {
	next := time.Time{}
	earliest := func(at time.Time) {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	for _, request := range w.requests {
		earliest(request.wakeAt())
	}
	for _, replica := range w.replicas {
		for _, driver := range replica.all() {
			if driver.sleeping {
				earliest(driver.wakeAt.Add(-replica.offset))
			}
			if !driver.held.IsZero() {
				earliest(driver.held.Add(-replica.offset))
			}
		}
		if replica.counter == nil {
			continue
		}
		for q, due := range replica.counter.due {
			if !due.IsZero() && replica.counter.tasks[q] == nil {
				earliest(due.Add(-replica.offset))
			}
		}
	}
	return next
}

// clients lets clients of an undisturbed cluster work. Nothing may be refused for which
// there is room.
func (s *schedule) clients() {
	w := s.world
	weights := [actions]int{}
	weights[beginRequest], weights[deleteObject], weights[label], weights[growUnasked], weights[beginEdit] = 12, 4, 1, 1, 1
	if w.shape.grows {
		weights[deleteObject], weights[label], weights[growUnasked], weights[beginEdit] = 0, 0, 0, 2
	}
	for range 10 {
		if w.failure != nil {
			return
		}
		s.ids++
		drawn := s.random.Uint64()
		s.chooser.reset(w, &weights)
		s.chooser.clients(s.ids, w.drawHard(drawn), int(drawn>>8%4096))
		if s.chooser.total > 0 {
			w.do(s.pick(s.random.IntN(s.chooser.total)))
		}
		for range drawn >> 40 % 6 {
			s.undisturbed()
		}
		if drawn>>48%3 == 0 {
			s.rest(time.Duration(drawn>>52%1024) * time.Millisecond)
		}
	}
}

func (s *schedule) pick(left int) step {
	for _, choice := range s.chooser.choices {
		left -= choice.weight
		if left < 0 {
			return choice.step
		}
	}
	panic("unreachable")
}

// rest lets some time pass.
func (s *schedule) rest(long time.Duration) {
	w := s.world
	for until := w.now.Add(long); w.failure == nil && w.now.Before(until); {
		if s.undisturbed() {
			continue
		}
		w.checkLearning()
		next := w.nextWake()
		if next.IsZero() || next.After(until) {
			next = until
		}
		w.pass(max(next.Sub(w.now), 0) + time.Millisecond)
	}
}

// run runs a whole schedule.
func (s *schedule) run() *failure {
	w := s.world
	s.setUp()
	s.disturb()
	return s.end(w)
}

// end lets the cluster come to rest, looks whether all is well, and again after some
// undisturbed work.
func (s *schedule) end(w *world) *failure {
	s.settle()
	if w.failure == nil {
		w.checkStill()
	}
	if w.failure == nil {
		w.shape.calm, w.shape.disturbed = true, w.now
		s.clients()
		s.settle()
	}
	if w.failure == nil {
		w.checkStill()
	}
	return w.failure
}
