// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// lookSoon is how soon a reconcile comes again.
const lookSoon = 20 * time.Millisecond

// task is a reconcile of one quota by the leader: it defines the count, makes the ledger, and looks
// after expiry. Each stage makes one call, or waits.
type task struct {
	stage taskStage
	quota int
	uid   types.UID
	// ledger and found are the results of live reads, or cached.
	ledger *stored
	found  *quota
	cached bool
	state  ledger.State
	// replaced is the version of the ledger that was last written.
	replaced machine.Version
	newest   *ledger.Newest
	// expired are looked up one after the other; dropped are the reservations for which nothing is awaited.
	expired, dropped []ledger.Reservation
	// escrows are those of holders that are gone, and doubted are reservations without an object.
	escrows []ledger.Escrow
	doubted []ledger.Reservation
	// vain: the fence is of a spec that is never going to be stored. The stored one is of this generation. The fence is
	// zero before its life is over.
	fence      ledger.Fence
	vain       bool
	generation int64
	// joined are the namespaces whose objects are looked up.
	joined []counting.Joined
	// forgotten is which Forget is being followed; zero for none.
	forgotten ledger.Forgotten
	reply     *reply
}

type taskStage int

const (
	taskDelete taskStage = iota
	taskReadLedger
	taskReadQuota
	taskCreate
	taskKeepName
	taskRemove
	taskNewest
	taskFill
	taskName
	taskOpen
	taskLook
	taskGeneration
	taskDemand
	taskProve
	taskEdit
	taskDone
)

// isDue reports whether a reconcile of the quota begins.
func (c *counter) isDue(q int) bool {
	return c.tasks[q] == nil && !c.due[q].IsZero() && !c.due[q].After(c.replica.now())
}

// again asks for a reconcile in a while; zero for none.
func (c *counter) again(q int, in time.Duration) {
	if in == 0 {
		return
	}
	if at := c.replica.now().Add(in); c.due[q].IsZero() || at.Before(c.due[q]) {
		c.due[q] = at
	}
}

// reconcile begins.
func (c *counter) reconcile(q int) {
	c.due[q] = time.Time{}
	known := c.replica.quotas[q]
	if known == nil {
		c.specs[q] = nil
		c.forget(q)
		if c.replica.ledgers[q] != nil {
			c.tasks[q] = &task{stage: taskDelete, quota: q, ledger: c.replica.ledgers[q]}
		}
		return
	}
	c.define(known)
	work := &task{quota: q, uid: known.uid, stage: taskReadLedger}
	work.first(c, known)
	if c.isOpen(q, known.uid) {
		work.beginExpiry(c)
	}
	if work.stage != taskDone {
		c.tasks[q] = work
	}
}

// first goes by the cache if the quota names no ledger there, and more often than the operator does, also if the ledger has
// versions that the watches haven't shown.
func (t *task) first(c *counter, known *quota) {
	switch current := c.replica.current(t.quota); {
	case known.ledger != "":
	case current.Version.IsZero():
		t.cached, t.found, t.stage = true, known, taskCreate
	case current.State.Quota == t.uid && !current.Edited && !current.State.Sealed.IsZero():
		t.cached, t.found, t.stage = true, known, taskName
		t.ledger, t.state, t.replaced = &stored{snapshot: current}, current.State, current.Version
	}
}

// isOpen reports whether the machine knows an open ledger of the quota, and the cache has
// it, too: of a ledger that was read before the cache's first list, no watch tells that it
// is gone.
func (c *counter) isOpen(q int, uid types.UID) bool {
	current, cached := c.replica.current(q), c.replica.ledgers[q]
	there := cached != nil && cached.snapshot.Version.UID == current.Version.UID || c.replica.world.mutation.trustsMachine
	return there && current.State.Quota == uid && current.State.Sealed.IsZero()
}

// isReady reports whether the task can go on.
func (t *task) isReady() bool { return t.stage != taskEdit || t.reply.came }

// goOn makes the next call of a task. If it is lost, it happened or not.
func (c *counter) goOn(q int, outcome outcome) {
	work := c.tasks[q]
	switch work.stage {
	case taskLook, taskGeneration, taskDemand, taskProve:
		work.goOnExpiry(c, outcome)
	case taskEdit:
		work.stage = taskDone
		c.again(q, lookSoon)
	default:
		switch {
		case work.recover(c, outcome):
		case work.cached && outcome == succeeds:
			work.cached, work.stage = false, taskReadLedger // it met a conflict
		default:
			work.stage = taskDone
			c.again(q, lookSoon)
		}
	}
	if work.stage == taskDone {
		c.tasks[q] = nil
	}
}

// outcome is the fate of a call.
type outcome int

const (
	succeeds outcome = iota
	// vanishes: the call never arrives.
	vanishes
	// unheard: the call takes effect, and its reply is lost.
	unheard
)

// recover makes the next step of a recovery, and returns false if it has to be begun again.
func (t *task) recover(c *counter, outcome outcome) bool {
	w := c.replica.world
	if outcome == vanishes {
		return false
	}
	switch t.stage {
	case taskDelete:
		w.deleteLedger(t.quota, t.ledger.snapshot.Version)
		t.stage = taskDone
	case taskReadLedger:
		t.ledger, t.stage = w.ledgers.newest[t.quota], taskReadQuota
	case taskReadQuota:
		t.found = w.quotas.newest[t.quota]
		if t.found == nil || t.found.uid != t.uid {
			return false
		}
		return t.decide(c)
	case taskCreate:
		created := ledger.State{Basis: ledger.Basis{Quota: t.uid}, Sealed: c.replica.stamp(0)}
		if !t.replace(c, machine.Version{}, created, outcome) {
			return false
		}
		c.seals[t.quota].See(c.replica.now(), ledger.Seal(t.replaced.UID))
		t.ledger, t.state, t.stage = w.ledgers.newest[t.quota], created, taskName
		return t.found.ledger == "" // the first one is named and opened without another look
	case taskKeepName:
		t.name(c)
		return false
	case taskRemove:
		w.deleteLedger(t.quota, t.ledger.snapshot.Version)
		return false
	default:
		return t.unseal(c, outcome)
	}
	return outcome == succeeds
}

// decide goes by the stored ledger.
func (t *task) decide(c *counter) bool {
	switch {
	case t.ledger == nil:
		t.stage = taskCreate
		return true
	case t.ledger.snapshot.Edited && t.found.ledger == "":
		t.stage = taskKeepName
		return true
	case t.ledger.snapshot.State.Quota != t.uid: // that of an edited one, too
		t.stage = taskRemove
		return true
	case t.ledger.snapshot.State.Sealed.IsZero():
		c.replica.driver(t.quota).step(machine.Seen{Snapshot: t.ledger.snapshot})
		return false
	}
	t.state, t.replaced = t.ledger.snapshot.State, t.ledger.snapshot.Version
	switch t.found.ledger {
	case t.replaced.UID:
		t.stage = taskOpen
	case "":
		t.stage = taskFill
	default:
		if left := c.sealed(t); left > 0 {
			c.again(t.quota, left)
			t.stage = taskDone
			return true
		}
		t.stage = taskNewest
	}
	return true
}

// unseal opens a ledger once all that is in flight is in it.
func (t *task) unseal(c *counter, outcome outcome) bool {
	w := c.replica.world
	switch t.stage {
	case taskNewest:
		t.newest = w.newest()
		t.state.Used, t.state.Counted, t.state.Unlisted, t.state.Forgotten = nil, t.newest.Versions, nil, 0
		t.stage = taskFill
		if !w.mutation.oldGeneration {
			t.state.Generation = t.found.generation
		}
		return outcome == succeeds
	case taskFill:
		t.stage = taskName
		return t.replace(c, t.replaced, t.state, outcome)
	case taskName:
		t.stage = taskOpen
		return t.name(c) && outcome == succeeds
	default:
		t.state.Sealed = time.Time{}
		if t.replace(c, t.replaced, t.state, outcome) {
			t.cached = false // no look follows
		}
		return false
	}
}

// name makes the quota's status name the ledger, unless the quota has changed.
func (t *task) name(c *counter) bool {
	w := c.replica.world
	current := w.quotas.newest[t.quota]
	if current == nil || current.revision != t.found.revision && !w.mutation.renames {
		return false
	}
	named := *current
	named.ledger = t.ledger.snapshot.Version.UID
	w.putQuota(named)
	return true
}

// replace stores a ledger outside of the machine.
func (t *task) replace(c *counter, previous machine.Version, next ledger.State, outcome outcome) bool {
	version, err := c.replica.world.swap(t.quota, previous, next, false)
	if err != nil || outcome != succeeds {
		return false
	}
	t.replaced = version
	c.replica.driver(t.quota).step(machine.Replaced{Snapshot: machine.Snapshot{Version: version, State: next}})
	return true
}
