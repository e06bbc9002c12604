// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// overload is why a call may be too slow though nothing is broken.
const overload = "too much to do for the machine"

// attempt is one call of a client.
type attempt struct {
	action   string
	from, to time.Time
	outcome  Outcome
	err      error
	warnings []string
}

func (a attempt) String() string {
	return fmt.Sprintf("%s to %s: %s: %s: %v",
		a.from.Format("15:04:05.000"), a.to.Format("15:04:05.000"), a.action, a.outcome, a.err)
}

// Tally collects how the calls of all clients ended.
type Tally struct {
	// mu guards what follows.
	mu sync.Mutex
	// what was called -> outcome -> how often
	counts map[string]map[Outcome]int
	// doubtful are those that need an excuse.
	doubtful []attempt
	slowest  attempt
	writes   []Write
	// what was refused because it doesn't fit -> how often
	exceeded map[Exceeding]int
}

func newTally() *Tally {
	return &Tally{counts: map[string]map[Outcome]int{}, exceeded: map[Exceeding]int{}}
}

func (t *Tally) add(a attempt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts[a.action] == nil {
		t.counts[a.action] = map[Outcome]int{}
	}
	t.counts[a.action][a.outcome]++
	switch a.outcome {
	case Exceeded:
		for _, of := range exceedings(a.err) {
			t.exceeded[of]++
		}
	case Unknown, CallLost, Unanswered, Undecided, Interrupted, Disconnected, Failed:
		t.doubtful = append(t.doubtful, a)
	default:
	}
	if a.to.Sub(a.from) > t.slowest.to.Sub(t.slowest.from) {
		t.slowest = a
	}
}

// Count returns how many calls ended so.
func (t *Tally) Count(outcome Outcome) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := 0
	for _, of := range t.counts {
		sum += of[outcome]
	}
	return sum
}

// Exceeded returns how often requests were refused for the sake of which resources of which quotas.
func (t *Tally) Exceeded() map[Exceeding]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.exceeded)
}

// Verdict holds what clients met against the disruptions of the time. It returns
// the calls that nothing excuses, for a person to read, and how many calls each
// disruption excuses. The first calls that were only too slow, as many as may be, are told
// of among those.
func (t *Tally) Verdict(during *Disruptions, maySlow int) (inexcusable []string, excused map[string]int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	excused = map[string]int{}
	for _, a := range t.doubtful {
		if name, ok := during.excuse(a); ok {
			excused[name]++
			continue
		}
		if slow := a.outcome == Undecided || a.outcome == Unanswered; slow && excused[overload] < maySlow {
			excused[overload]++
			continue
		}
		inexcusable = append(inexcusable, a.String())
	}
	return inexcusable, excused
}

// Calls returns how many calls there were.
func (t *Tally) Calls() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := 0
	for _, of := range t.counts {
		for _, count := range of {
			sum += count
		}
	}
	return sum
}

// String tells all counts, a line each.
func (t *Tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var text strings.Builder
	for _, action := range slices.Sorted(maps.Keys(t.counts)) {
		fmt.Fprintf(&text, "%s:", action)
		for _, outcome := range slices.Sorted(maps.Keys(t.counts[action])) {
			fmt.Fprintf(&text, " %s %d,", outcome, t.counts[action][outcome])
		}
		text.WriteString("\n")
	}
	fmt.Fprintf(&text, "slowest: %s, %s", t.slowest.to.Sub(t.slowest.from).Round(time.Millisecond), t.slowest.action)
	return strings.ReplaceAll(text.String(), ",\n", "\n")
}
