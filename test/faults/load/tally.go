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

// attempt is one call of a client.
type attempt struct {
	action   string
	from, to time.Time
	outcome  Outcome
	err      error
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
}

func newTally() *Tally {
	return &Tally{counts: map[string]map[Outcome]int{}}
}

func (t *Tally) add(a attempt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts[a.action] == nil {
		t.counts[a.action] = map[Outcome]int{}
	}
	t.counts[a.action][a.outcome]++
	switch a.outcome {
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

// Verdict holds what clients met against the disruptions of the time. It returns
// the calls that nothing excuses, for a person to read, and how many calls each
// disruption excuses.
func (t *Tally) Verdict(during *Disruptions) (inexcusable []string, excused map[string]int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	excused = map[string]int{}
	for _, a := range t.doubtful {
		if name, ok := during.excuse(a); ok {
			excused[name]++
			continue
		}
		inexcusable = append(inexcusable, a.String())
	}
	return inexcusable, excused
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
