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
	canary canary
}

// weather lets faults of all kinds go on for a round, while clients hammer at
// the limit.
func weather(ctx context.Context, round uint64) *world {
	GinkgoHelper()
	replicas.startAll(ctx)
	w := newWorldWithSurge(ctx, 12, 20)
	plan := w.plan(100 + round)
	plan.Forges = true
	plan.Rest = 0
	plan.Orphans = true
	plan.Refusing = []string{w.namespaces[1]}
	plan.Pods = slices.Delete(slices.Clone(plan.Pods), 1, 2)
	suite.RefuseAll(ctx, api, w.namespaces[1])
	s := &storm{random: random(1000 + round), start: time.Now(), canary: canary{label: w.name}}
	s.canary.start(ctx)
	clients := load.Start(ctx, api, plan)
	defer clients.Stop()

	duration := max(pauseFor, min(maxRound, stormDuration()))
	s.depose(ctx)
	for time.Since(s.start) < duration || s.asleep != nil || len(s.deck) > 0 {
		s.next(ctx)
		pass(ctx, time.Duration(1000+s.random.IntN(2000))*time.Millisecond)
		s.wake(ctx)
	}
	clients.Stop()
	s.canary.stop(ctx)
	AddReportEntry("what broke", strings.Join(s.diary, "\n"))
	AddReportEntry("injected by the proxies", counts(replicas.injected()))
	w.tellPeaks(wantNothingOver(ctx))
	wantServed(clients.Tally)
	return w
}

// depose pauses the leader, and lets a replica succeed whose caches are older
// than the ledger.
func (s *storm) depose(ctx context.Context) {
	GinkgoHelper()
	s.asleep = replicas.waitForLeader(ctx)
	defer s.hearAgain(ctx)
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
	return breaks
}

// deafening breaks what lets the leader miss what happens meanwhile.
func (s *storm) deafening(do func(context.Context)) func(context.Context) {
	return func(ctx context.Context) {
		defer s.hearAgain(ctx)
		do(ctx)
	}
}

// hearAgain returns once the leader hears what happens.
func (s *storm) hearAgain(ctx context.Context) {
	replicas.recover(ctx)
	s.canary.sing(ctx)
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
