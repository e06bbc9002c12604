// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// share is how many schedules an ordinary run of the tests makes.
const share = 4000

// keptSeeds once failed, or reach states that few others do.
func keptSeeds() []uint64 {
	return []uint64{
		5, 7, 13, 14, 19, 20, 23, 26, 27, 39, 62, // recounts that were not settled
		95, 256, 324, 345, 616, 788, 921, 1007, 1123, // objects in namespaces that had left
		725,                                         // a look that was believed for seconds
		4163, 4579, 6885, 7739, 13787, 17351, 19671, // updates of objects seen in a later version
		10491, 13536, 16538, // counts that were behind, and came up unnoticed
		1795336917868654008, 1795336917868675079, 1795336917868775534, 103610, // replies from before a deletion
		167852, 299564, 741084, 816380, 861244, // sources that were behind when a namespace joined
		527180,               // a namespace that came and left unseen
		11018846017545156207, // a fence of two edits, of which the first was stored
		1795474587249524556,  // a namespace that joined before one changed that isn't selected
		13835058055282825175, // a denial by limits that only advised when it was answered
		40118,                // a quota that is deleted while it refuses
		502722,               // a count that was reported, and overtaken before it was written
		11018847188882768748, // a charge that waited while the escrow was taken from which it was granted
		1795751196228141422,  // a leader that asked itself to count a namespace that joined, and didn't
		1795751196228147354,
		9511602413006534626, // a replacement that also lacked room which another replica held in escrow
	}
}

// explain returns the steps of a failed schedule, with as few steps as still fail.
func explain(seed uint64, mutation mutation) string {
	words := newVocabulary()
	first := newSchedule(words, seed, mutation, nil)
	if first.run() == nil {
		return fmt.Sprintf("seed %d does not fail", seed)
	}
	steps := shrink(words, seed, mutation, first.steps)
	trace := &trace{machines: os.Getenv("SIMULATE_MACHINES") != ""}
	again := newSchedule(words, seed, mutation, trace)
	failure := again.replay(steps)
	if failure == nil {
		return fmt.Sprintf("seed %d does not always fail: %s", seed, first.world.failure.message)
	}
	return fmt.Sprintf("seed %d, %d of %d steps: %s\n%s\n\nSIMULATE_SEED=%d go test -run TestSeed ./internal/simulation",
		seed, len(steps), len(first.steps), failure.message, trace, seed)
}

// replay runs a schedule with the steps of another. A step that isn't possible is left out.
func (s *schedule) replay(steps []step) *failure {
	s.setUp()
	for _, step := range steps {
		if s.world.failure == nil && s.canMake(step) {
			s.make(step)
		}
	}
	for range s.world.shape.length {
		s.random.Uint64() // the rest is drawn otherwise than in the first run
	}
	return s.end(s.world)
}

// canMake reports whether a step is possible now.
func (s *schedule) canMake(wanted step) bool {
	weights := [actions]int{}
	for action := range actions {
		weights[action] = 1
	}
	s.chooser.reset(s.world, &weights)
	s.chooser.progress()
	possible := func(choice choice) bool { return choice.step.same(wanted) }
	if slices.ContainsFunc(s.chooser.choices, possible) {
		return true
	}
	w := s.world
	switch wanted.action {
	case beginRequest, beginUnasked:
		return len(w.requests) < w.shape.open
	case advance:
		return true
	case label:
		return w.namespaces.newest[wanted.a] != nil
	case beginEdit:
		return w.quotas.newest[wanted.b%maxQuotas] != nil
	case createNamespace:
		return w.namespaces.newest[wanted.a] == nil
	case createQuota:
		return w.quotas.newest[wanted.a] == nil
	default:
		s.chooser.clients(0, 0, 0)
		return slices.ContainsFunc(s.chooser.choices, possible)
	}
}

// shrink leaves out steps while the schedule still fails.
func shrink(words *vocabulary, seed uint64, mutation mutation, steps []step) []step {
	fails := func(steps []step) bool { return newSchedule(words, seed, mutation, nil).replay(steps) != nil }
	if !fails(steps) {
		return steps
	}
	for size := len(steps) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(steps); {
			fewer := slices.Concat(steps[:at], steps[at+size:])
			if fails(fewer) {
				steps = fewer
			} else {
				at += size
			}
		}
	}
	return steps
}

// explore runs schedules until there are enough, or time is over.
func explore(t *testing.T, seeds func(n int) (uint64, bool)) {
	t.Helper()
	words, total, made, begun, failed := newVocabulary(), counts{}, 0, cpuTime(), 0
	for n := 0; failed < 3; n++ {
		seed, more := seeds(n)
		if !more {
			break
		}
		s := newSchedule(words, seed, noMutation(), nil)
		failure := s.run()
		total.add(&s.world.counts)
		made++
		if failure != nil {
			failed++
			t.Error(explain(seed, noMutation()))
		}
	}
	t.Logf("%d schedules, %.0f in a second of one core; %s", made, float64(made)/(cpuTime()-begun).Seconds(), &total)
}

// cpuTime is the time that this process has used of all cores.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func (c *counts) String() string {
	var times []string
	for action, name := range &actionNames {
		times = append(times, fmt.Sprintf("%s %d", name, c.by[action]))
	}
	return fmt.Sprintf("%d steps, %d of them of clusters left alone; %d requests asked, %d figures committed, %d of them exempt; "+
		"%d granted at once; %d remarked on, %d passed over; %d proved, %d above hard; %d denied, %d judged; %d undecided, %d cut short; %d ledger writes, %d conflicts (%s)",
		c.steps, c.settling, c.asked, c.commits, c.exempt, c.atOnce, c.remarked, c.passed, c.proved, c.above, c.denied, c.judged, c.undecided, c.cut, c.writes, c.conflicts, strings.Join(times, ", "))
}

func TestSchedules(t *testing.T) {
	number := share
	if raceEnabled {
		number /= 20
	}
	explore(t, func(n int) (uint64, bool) { return uint64(n), n < number })
}

// TestEscrow runs schedules in which replicas take escrows.
func TestEscrow(t *testing.T) {
	number := share
	if raceEnabled {
		number /= 20
	}
	explore(t, func(n int) (uint64, bool) { return withEscrow | uint64(n), n < number })
}

// TestModes runs schedules in which quotas change between Deny and Audit, half of them with escrow.
func TestModes(t *testing.T) {
	number := share / 4
	if raceEnabled {
		number /= 20
	}
	explore(t, func(n int) (uint64, bool) { return withModes | uint64(n%4/2)<<63 | uint64(n), n < number })
}

// TestRestores runs schedules in which etcd is put back to backups, half of them with escrow.
func TestRestores(t *testing.T) {
	number := share / 4
	if raceEnabled {
		number /= 20
	}
	explore(t, func(n int) (uint64, bool) { return withRestores | uint64(n%4/2)<<63 | uint64(n), n < number })
}

// TestSurge runs schedules in which quotas have surge, half of them with escrow, and some with modes.
func TestSurge(t *testing.T) {
	number := share / 2
	if raceEnabled {
		number /= 20
	}
	explore(t, func(n int) (uint64, bool) {
		return withSurge | uint64(n%4/2)<<63 | uint64(n%16/15)<<62 | uint64(n), n < number
	})
}

func TestKeptSeeds(t *testing.T) {
	seeds := keptSeeds()
	explore(t, func(n int) (uint64, bool) {
		if n >= len(seeds) {
			return 0, false
		}
		return seeds[n], true
	})
}

// TestFresh runs fresh seeds for SIMULATE. Without it, it runs a few.
func TestFresh(t *testing.T) {
	long, err := time.ParseDuration(os.Getenv("SIMULATE"))
	if err != nil {
		long = time.Second
	}
	clock := clock.RealClock{}
	first, until := uint64(clock.Now().UnixNano()), clock.Now().Add(long)
	t.Logf("first seed %d", first)
	explore(t, func(n int) (uint64, bool) {
		return first + uint64(n) | uint64(n%2)<<63 | uint64(n/2%2)<<62 | uint64(n/4%4/3)<<61 | uint64(n/16%2)*withSurge, clock.Now().Before(until)
	})
}

// TestSeed replays SIMULATE_SEED; without it, one seed, whose trace must tell something.
func TestSeed(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv("SIMULATE_SEED"), 10, 64)
	if err != nil {
		seed = 1
	}
	trace := &trace{machines: os.Getenv("SIMULATE_MACHINES") != ""}
	s := newSchedule(newVocabulary(), seed, noMutation(), trace)
	if failure := s.run(); failure != nil {
		t.Fatalf("%s\n\n%s\n%s", explain(seed, noMutation()), trace, failure.message)
	}
	if len(trace.lines) < 100 {
		t.Errorf("the trace has %d lines", len(trace.lines))
	}
	t.Log("\n" + trace.String())
}
