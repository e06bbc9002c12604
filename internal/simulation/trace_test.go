// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"

	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// counts are the numbers of events, for the log.
type counts struct {
	steps, settling, asked, commits, exempt, atOnce, denied, judged, undecided, conflicts, writes, impossible int
	// remarked are charges that were remarked on, and passed are charges that a quota couldn't decide and let pass.
	remarked, passed int
	// cut are charges that took too long.
	cut int
	// proved are commits of objects that were proved to replace others, and above those after which more lived than hard.
	proved, above int
	by            [actions]int
}

func (c *counts) add(other *counts) {
	c.steps += other.steps
	c.settling += other.settling
	c.asked += other.asked
	c.commits += other.commits
	c.exempt += other.exempt
	c.atOnce += other.atOnce
	c.denied += other.denied
	c.judged += other.judged
	c.undecided += other.undecided
	c.conflicts += other.conflicts
	c.writes += other.writes
	c.impossible += other.impossible
	c.remarked += other.remarked
	c.cut += other.cut
	c.passed += other.passed
	c.proved += other.proved
	c.above += other.above
	for action, times := range other.by {
		c.by[action] += times
	}
}

// trace describes a schedule, a line for each step.
type trace struct {
	lines []string
	// machines: the events and effects of machines are described, too.
	machines bool
}

func (t *trace) note(w *world, s step) {
	line := fmt.Sprintf("%8.3fs  %-60s", w.now.Sub(w.start).Seconds(), w.describe(s))
	for q, ledger := range w.ledgers.newest {
		if w.quotas.newest[q] == nil && ledger == nil {
			continue
		}
		line += "  " + w.vocabulary.quotas[q]
		if quota := w.quotas.newest[q]; quota != nil {
			line += fmt.Sprintf(" hard %v live %v", quota.hard, w.room[q].live)
			if w.shape.surges {
				line += fmt.Sprintf(" surge %v", quota.surge)
			}
			if quota.audits {
				line += " audits"
			}
		}
		if ledger != nil {
			state := ledger.snapshot.State
			line += fmt.Sprintf(" used %v reserved %v @%d", w.amounts(state.Used), w.amounts(state.Reserved()), ledger.snapshot.Version.ResourceVersion)
			if state.Used == nil {
				line += " uncounted"
			}
			if !state.Sealed.IsZero() {
				line += " sealed"
			}
			if state.Fence.Generation != 0 {
				line += fmt.Sprintf(" fence %v surge %v", w.amounts(state.Fence.Hard), w.amounts(state.Fence.Surge))
			}
		}
	}
	t.lines = append(t.lines, line)
}

// step notes the event that a machine was told, and the effects that it asks for.
func (t *trace) step(d *driver, event machine.Event, effects []machine.Effect) {
	if !t.machines {
		return
	}
	line := fmt.Sprintf("%10s replica %d, %s: %s ->", "", d.replica.id, d.replica.world.vocabulary.quotas[d.quota], name(event))
	for _, effect := range effects {
		line += " " + name(effect)
		switch effect := effect.(type) {
		case machine.WakeAt:
			line += fmt.Sprintf(" in %v", effect.Time.Sub(d.replica.now()))
		case machine.Answer:
			line += fmt.Sprintf(" %+v", effect.Decision)
		default:
		}
	}
	t.lines = append(t.lines, line)
}

func name(of any) string { return strings.TrimPrefix(fmt.Sprintf("%T", of), "machine.") }

func (w *world) describe(s step) string {
	switch s.action {
	case startReplica, elect, crash, depose:
		return fmt.Sprintf("replica %d: %s", s.a, actionNames[s.action])
	case tick, replyCall, effectCall, loseCall, forgetCall:
		return fmt.Sprintf("replica %d: %s %s", s.a, actionNames[s.action], w.describeDriver(s))
	case deliverWatch, relist:
		kinds := [kinds]string{"ledgers", "namespaces", "quotas", "namespaces to count", "widgets to count", "claims to count"}
		return fmt.Sprintf("replica %d: %s of %s, %d of %d", s.a, actionNames[s.action], kinds[s.b], w.replicas[s.a].streams[s.b].position, w.length(kind(s.b)))
	case goOnTask, beginTask, loseTask, unhearTask:
		stage := ""
		if counter := w.replicas[s.a].counter; counter != nil && counter.tasks[s.b] != nil {
			stage = fmt.Sprintf(", now at stage %d", counter.tasks[s.b].stage)
		}
		return fmt.Sprintf("replica %d: %s of %s%s", s.a, actionNames[s.action], w.vocabulary.quotas[s.b], stage)
	case takeRead, takeProof, failProof, goOnRequest, answerRequest, noticeLeft, persistObject, beginRequest, beginUnasked, failRead, loseAnswer, leave, failRequest:
		return fmt.Sprintf("request %d: %s%s", s.a, actionNames[s.action], w.describeRequest(s.a))
	default:
		return s.String()
	}
}

func (w *world) describeDriver(s step) string {
	for _, driver := range w.replicas[s.a].all() {
		if driver.serial == s.b {
			text := w.vocabulary.quotas[driver.quota]
			if driver.call != nil && driver.call.swap != nil {
				text += ", then swap"
			} else if driver.call != nil {
				text += ", then load"
			}
			return text
		}
	}
	return ""
}

func (w *world) describeRequest(id int) string {
	r := w.request(id)
	if r == nil {
		return ""
	}
	what := fmt.Sprintf(" at replica %d of %v in n%d", r.replica.id, r.rise, r.namespace)
	if r.from != 0 {
		what += fmt.Sprintf(" from %d", r.from)
	}
	if !r.asked.isNone() {
		what += fmt.Sprintf(" asked %v epoch %d", r.asked.quotas, r.asked.epoch)
	}
	if r.replaces {
		what += " replaces"
	}
	what += fmt.Sprintf(": status %d stage %d", r.status, r.stage)
	if decision := r.facts.Outcome.Decision; decision != nil {
		what += fmt.Sprintf(" %T", decision)
	}
	return what
}

func (t *trace) String() string { return strings.Join(t.lines, "\n") }
