// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/sharedquota/shared-quota-operator/test/faults/load"
	"github.com/sharedquota/shared-quota-operator/test/faults/proxy"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

const (
	// pauseFor is longer than the life of a reservation, and than a lease.
	pauseFor = reservationTTL + 2*time.Second
	// maxRound is how long a round lasts at most.
	maxRound = 3 * time.Minute
	// maySlow is which part of the calls may not be decided in time in a storm with moves:
	// two cores are busy all the time, and on a machine that is, a write of a ledger that
	// several replicas fight over may take a second.
	maySlow = 0.002
	// staleBy is how old a new leader's caches are.
	staleBy = 3 * time.Second
)

// storm breaks one thing after the other.
type storm struct {
	random *rand.Rand
	start  time.Time
	// diary tells what happened when.
	diary []string
	// deck holds the faults to come; all come before one comes again.
	deck []string
	// asleep is the leader that was paused; nil once it goes on.
	asleep *place
	// done counts what was broken.
	done   map[string]int
	canary canary
}

// weather lets faults of all kinds go on for a round, while clients hammer at
// the limit.
func weather(ctx context.Context, round uint64) *world {
	GinkgoHelper()
	replicas.startAll(ctx)
	size, rest := 12, time.Duration(0)
	if len(chosenMoves()) > 0 {
		// Movers, and the API server's own watches, need some of the machine, too.
		size, rest = 8, 100*time.Millisecond
	}
	w := newWorld(ctx, size)
	plan := w.plan(100 + round)
	plan.Rest = rest
	plan.Orphans = true
	plan.Refusing = []string{w.namespaces[1]}
	plan.Pods = slices.Delete(slices.Clone(plan.Pods), 1, 2)
	suite.RefuseAll(ctx, api, w.namespaces[1])
	w.prepareMoves(ctx, &plan)
	s := &storm{random: random(1000 + round), start: time.Now(), done: map[string]int{}, canary: canary{label: w.name}}
	s.canary.start(ctx)
	modes := startModes(ctx, w, 200+10*round)
	defer modes.stop()
	clients := load.Start(ctx, api, plan)
	defer clients.Stop()
	evidence.hear(clients.Tally)
	movers := startMovers(ctx, w, round)

	duration := max(pauseFor, min(maxRound, stormDuration()))
	s.depose(ctx)
	for time.Since(s.start) < duration || s.asleep != nil || len(s.deck) > 0 {
		s.next(ctx)
		pass(ctx, time.Duration(1000+s.random.IntN(2000))*time.Millisecond)
		s.wake(ctx)
	}
	movers.stop()
	clients.Stop()
	modes.stop()
	s.canary.stop(ctx)
	AddReportEntry("what broke", strings.Join(s.diary, "\n"))
	movers.tellMoves(s.done)
	AddReportEntry("injected by the proxies", counts(replicas.injected()))
	report := wantNothingOver(ctx)
	w.tellPeaks(report)
	modes.wantServed(report)
	slow := 0.0
	if len(chosenMoves()) > 0 {
		slow = maySlow
	}
	wantServedBut(clients.Tally, slow)
	return w
}

// depose pauses the leader, and lets a replica succeed whose caches are older
// than the ledger.
func (s *storm) depose(ctx context.Context) {
	GinkgoHelper()
	s.asleep = replicas.waitForLeader(ctx)
	s.done["pause the leader; its successor's watches are late"]++
	defer s.hearAgain(ctx, deafen())
	setLag(staleBy)
	defer setLag(0)
	s.notef("pause the leader, %s; watches are %s late", s.asleep.name, staleBy)
	replicas.pause(ctx, s.asleep)
	next := replicas.waitForLeader(ctx)
	s.notef("%s leads", next.name)
	pass(ctx, 2*staleBy)
}

// wake lets the paused leader go on once its reservations, its lease and its
// successor's start lie behind it.
func (s *storm) wake(ctx context.Context) {
	if s.asleep != nil && time.Since(s.start) > pauseFor {
		s.notef("resume %s", s.asleep.name)
		replicas.resume(s.asleep)
		s.asleep = nil
		pass(ctx, 3*time.Second) // Nothing else is to keep it from what it meant to do.
	}
}

func (s *storm) notef(format string, args ...any) {
	line := fmt.Sprintf("%5.1fs ", time.Since(s.start).Seconds()) + fmt.Sprintf(format, args...)
	s.diary = append(s.diary, line)
	_, _ = fmt.Fprintln(GinkgoWriter, line)
}

// next breaks one thing, and brings back what had ended.
func (s *storm) next(ctx context.Context) {
	GinkgoHelper()
	if len(s.deck) == 0 {
		s.deck = slices.Sorted(maps.Keys(s.breaks()))
		s.random.Shuffle(len(s.deck), func(i, j int) { s.deck[i], s.deck[j] = s.deck[j], s.deck[i] })
	}
	fault := s.deck[0]
	s.deck = s.deck[1:]
	s.notef("%s", fault)
	s.done[fault]++
	s.breaks()[fault](ctx)
	replicas.recover(ctx)
}

// breaks are the faults, name -> what it does.
func (s *storm) breaks() map[string]func(context.Context) {
	breaks := map[string]func(context.Context){
		"kill a follower":               s.killFollower,
		"kill the leader":               s.deafening(s.killLeader),
		"stop a replica":                s.deafening(s.terminate),
		"store faults":                  s.deafening(s.store),
		"cut watches":                   s.deafening(func(context.Context) { s.cut(false) }),
		"cut watches, and list again":   s.deafening(func(context.Context) { s.cut(true) }),
		"late watches":                  s.deafening(s.lag),
		"replace the callers' token":    s.replaceToken,
		"kill and start the API server": s.deafening(s.apiServer),
	}
	if stormDuration() > 0 {
		breaks["kill all replicas"] = s.deafening(s.killAll)
	}
	if moves(silentWatches) {
		breaks["hold back the watches of one replica in silence"] = s.silence
	}
	if moves(behindWatches) {
		breaks["late watches of one replica"] = s.lagOne
	}
	return breaks
}

// deafening lets the leader miss what happens while something is broken.
func (s *storm) deafening(do func(context.Context)) func(context.Context) {
	return func(ctx context.Context) {
		defer s.hearAgain(ctx, deafen())
		do(ctx)
	}
}

// deafen notes that the leader hears nothing, until the returned function is called. Then
// it can't count a namespace that joins a quota.
func deafen() (end func()) {
	hears, counts := evidence.deafen(), func() {}
	if moves(movedSpaces) {
		counts = disruptions.Begin("a namespace joins while the leader is deaf", load.Unknown)
	}
	return func() {
		hears()
		counts()
	}
}

// hearAgain ends the time in which the leader is deaf, once it isn't any more.
func (s *storm) hearAgain(ctx context.Context, end func()) {
	replicas.recover(ctx)
	s.canary.sing(ctx)
	end()
}

// silence holds back the watches of one replica while others hear.
func (s *storm) silence(ctx context.Context) {
	GinkgoHelper()
	s.toOne(ctx, func(one *proxy.Proxy) {
		one.HoldWatches(true)
		defer one.HoldWatches(false)
		pass(ctx, time.Duration(5+s.random.IntN(10))*time.Second)
	})
}

// lagOne makes the watches of one replica late.
func (s *storm) lagOne(ctx context.Context) {
	GinkgoHelper()
	s.toOne(ctx, func(one *proxy.Proxy) {
		one.SetLag(time.Duration(2+s.random.IntN(6)) * time.Second)
		defer one.SetLag(0)
		pass(ctx, 10*time.Second)
	})
}

// toOne does something to one replica's proxy, the leader's or another's.
func (s *storm) toOne(ctx context.Context, do func(*proxy.Proxy)) {
	GinkgoHelper()
	leader, up := replicas.waitForLeader(ctx), replicas.up()
	one := up[s.random.IntN(len(up))]
	if one == leader && len(up) > 1 && s.random.IntN(2) == 0 {
		one = up[(slices.Index(up, one)+1)%len(up)] // Where the leader hears, it is of more interest.
	}
	s.notef("it is %s, and %s leads", one.name, leader.name)
	if one == leader {
		defer s.hearAgain(ctx, deafen())
	}
	do(one.proxy)
}

// killFollower kills a replica that doesn't lead, where another is left.
func (s *storm) killFollower(ctx context.Context) {
	up, leader := replicas.up(), replicas.leader()
	followers := slices.DeleteFunc(slices.Clone(up), func(p *place) bool { return p == leader })
	if len(up) > 1 && len(followers) > 0 {
		s.kill(ctx, followers[s.random.IntN(len(followers))])
	}
}

// killLeader kills the leader, where another replica is left.
func (s *storm) killLeader(ctx context.Context) {
	if leader := replicas.leader(); leader != nil && len(replicas.up()) > 1 {
		s.kill(ctx, leader)
	}
}

func (s *storm) kill(ctx context.Context, place *place) {
	GinkgoHelper()
	s.notef("killed %s", place.name)
	replicas.kill(place)
	pass(ctx, time.Duration(s.random.IntN(2000))*time.Millisecond)
	replicas.start(ctx, place)
}

// replaceToken has the API server call by another token, and lets a replica start that may
// be called by the one before.
func (s *storm) replaceToken(ctx context.Context) {
	GinkgoHelper()
	replicas.waitForLeader(ctx)
	before := suite.CallersToken(ctx, api)
	suite.ReplaceCallersToken(ctx, api)
	s.killFollower(ctx)
	Eventually(func() string { return suite.CallersToken(ctx, api) }).WithTimeout(suite.Deadline).ShouldNot(Equal(before))
}

// terminate stops a replica as a rolling update does, where another is left.
func (s *storm) terminate(ctx context.Context) {
	GinkgoHelper()
	up := replicas.up()
	if len(up) < 2 {
		return
	}
	place := up[s.random.IntN(len(up))]
	s.notef("stopped %s", place.name)
	replicas.terminate(place)
	replicas.start(ctx, place)
}

// store lets the writes of ledgers meet faults of all kinds for a while. Without
// a leader there would be few: nothing becomes free.
func (s *storm) store(ctx context.Context) {
	GinkgoHelper()
	replicas.waitForLeader(ctx)
	rates := proxy.Rates{}
	for _, fault := range proxy.StoreFaults() {
		rates[fault] = 0.15
	}
	inject(rates)
	defer inject(nil)
	pass(ctx, 5*time.Second)
}

func (s *storm) cut(gone bool) {
	for _, one := range replicas.proxies() {
		one.CutWatches(gone)
	}
}

// lag makes watches late for a while.
func (s *storm) lag(ctx context.Context) {
	setLag(time.Duration(500+s.random.IntN(2500)) * time.Millisecond)
	defer setLag(0)
	pass(ctx, 4*time.Second)
}

// killAll leaves no replica for a moment.
func (s *storm) killAll(ctx context.Context) {
	GinkgoHelper()
	end := disruptions.Begin("the absence of every replica", load.CallLost)
	defer time.AfterFunc(settled, end)
	for _, place := range replicas.up() {
		replicas.kill(place)
	}
	for _, place := range replicas.places {
		if place != s.asleep {
			replicas.revive(ctx, place)
		}
	}
}

// apiServer kills the API server and starts it again.
func (s *storm) apiServer(context.Context) {
	GinkgoHelper()
	end := disruptions.Begin("the restart of the API server",
		load.Disconnected, load.CallLost, load.Undecided, load.Unknown, load.Failed)
	defer time.AfterFunc(2*settled, end)
	Expect(cluster.RestartAPIServer()).To(Succeed())
	s.notef("the API server is back")
}
