// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// writing is how the leader writes the webhook configuration. If there is none, the API server
// asked about nothing meanwhile: the use is forgotten first.
type writing struct {
	previous uint64
	next     configuration
	// forgets are the quotas whose use is yet to be forgotten.
	forgets []int
	imposed *imposition
}

// imposition is a change of a ledger that must hold regardless of the ledger's fate.
type imposition struct {
	replica  *replica
	quota    int
	uid      types.UID
	change   func(*ledger.Draft)
	stranger bool
	reply    *reply
}

// impose is driver.Group.Impose.
func (r *replica) impose(q int, uid types.UID, change func(*ledger.Draft)) *imposition {
	i := &imposition{replica: r, quota: q, uid: uid, change: change}
	i.reply = r.driver(q).do(func(id machine.RequestID) machine.Event { return machine.Edit{ID: id, Change: i.apply} })
	return i
}

func (i *imposition) apply(draft *ledger.Draft) {
	i.stranger = draft.Quota() != i.uid
	if !i.stranger {
		i.change(draft)
	}
}

// end returns whether the change is stored. If there was no ledger, it makes one.
func (i *imposition) end() bool {
	err := i.reply.answer.Err
	if errors.Is(err, machine.ErrNoLedger) {
		draft := ledger.Edit(ledger.State{Basis: ledger.Basis{Quota: i.uid}, Sealed: i.replica.stamp(0)})
		i.apply(draft)
		err = i.replica.replaceLedger(i.quota, machine.Version{}, draft.State())
	}
	return err == nil && !i.stranger
}

// replaceLedger is driver.Group.Replace.
func (r *replica) replaceLedger(q int, previous machine.Version, next ledger.State) error {
	version, err := r.world.swap(q, previous, next, false)
	if err == nil {
		r.driver(q).step(machine.Replaced{Snapshot: machine.Snapshot{Version: version, State: next}})
	}
	return err
}

// wanted returns the configuration for the quotas that the replica knows.
func (c *counter) wanted() configuration {
	var wanted configuration
	for q, known := range c.replica.quotas {
		if known == nil {
			continue
		}
		if spec := c.specs[q]; spec == nil || spec.uid != known.uid || spec.generation != known.generation {
			c.specs[q] = &entry{uid: known.uid, generation: known.generation, version: known.revision}
		}
		wanted.quotas[q] = c.specs[q]
	}
	return wanted
}

// isUpToDate reports whether the stored configuration asks the right questions.
func (c *counter) isUpToDate() bool {
	stored := c.replica.world.newestConfiguration()
	if stored.deleted {
		return false
	}
	for q, wanted := range c.wanted().quotas {
		has := stored.quotas[q]
		if (wanted == nil) != (has == nil) || wanted != nil && (wanted.uid != has.uid || wanted.generation != has.generation) {
			return false
		}
	}
	return true
}

func (c *counter) beginWriting() {
	stored := c.replica.world.newestConfiguration()
	c.write = &writing{previous: stored.version, next: c.wanted()}
	for q, known := range c.replica.quotas {
		if stored.deleted && known != nil {
			c.write.forgets = append(c.write.forgets, q)
		}
	}
}

func (w *writing) isReady() bool { return w.imposed == nil || w.imposed.reply.came }

func (c *counter) goOnWriting(outcome outcome) {
	writing := c.write
	switch {
	case writing.imposed != nil:
		done := writing.imposed.end()
		writing.imposed = nil
		if !done {
			c.write = nil
		}
	case outcome == vanishes:
		c.write = nil
	case len(writing.forgets) > 0:
		q := writing.forgets[0]
		c.replica.world.uids++
		mark := ledger.Forgotten(c.replica.world.uids)
		writing.forgets = writing.forgets[1:]
		if known := c.replica.quotas[q]; known != nil {
			writing.imposed = c.replica.impose(q, known.uid, func(draft *ledger.Draft) { draft.Forget(mark) })
		}
	default:
		c.replica.world.writeConfiguration(writing.previous, writing.next)
		c.write = nil
	}
}

// edit is a client's edit of a quota's limits, which the webhook for quotas is asked about.
type edit struct {
	world      *world
	id         int
	replica    *replica
	begun      time.Time
	quota      int
	hard       figures
	surge      figures
	audits     bool
	stage      editStage
	revision   uint64
	generation int64
	imposed    *imposition
	tries      int
}

type editStage int

const (
	editAsked editStage = iota
	editAllowed
	editOver
)

// lowers reports whether the edit lowers a limit, with surge or without, or begins to enforce one.
func (e *edit) lowers(current *quota) bool {
	switch {
	case e.audits, e.world.mutation.noFence, current.audits && e.world.mutation.noModeFence:
		return false
	default:
		most := e.hard.plus(e.surge)
		lowersMost := most.max(current.hard.plus(current.surge)) != most && !e.world.mutation.noSurgeFence
		return current.audits || e.hard.max(current.hard) != e.hard || lowersMost
	}
}

// ask asks the webhook. If a limit is lowered, it first has the ledger bind.
func (e *edit) ask() {
	current := e.world.quotas.newest[e.quota]
	e.tries++
	if current == nil || e.tries > 3 || !e.replica.alive {
		e.stage = editOver
		return
	}
	e.revision, e.generation = current.revision, current.generation+1
	if !e.lowers(current) {
		e.stage = editAllowed
		return
	}
	fence := ledger.Fence{
		Generation: e.generation, Hard: e.world.hard(e.quota, e.hard), Until: e.replica.stamp(e.world.life()),
	}
	if fence.Surge = e.world.extra(e.quota, e.surge); e.world.mutation.largerSurge {
		fence.Surge = e.world.extra(e.quota, e.surge.max(current.surge))
	}
	e.stage = editAsked
	e.imposed = e.replica.impose(e.quota, current.uid, func(draft *ledger.Draft) {
		if e.world.shape.modes || e.world.shape.surges {
			enforced := ledger.Limits{Hard: current.list, Surge: current.extra}
			if current.audits {
				enforced = ledger.Limits{}
			}
			draft.UpdateFence(current.generation, enforced)
		}
		draft.SetFence(fence)
	})
}

func (e *edit) isReady() bool { return e.stage == editAsked && e.imposed.reply.came }

// goOn takes the answer.
func (e *edit) goOn() {
	if !e.imposed.end() {
		e.stage = editOver
		return
	}
	e.stage = editAllowed
}

// persist stores the edit. If another client has changed the quota meanwhile, the API server begins again.
func (e *edit) persist() {
	current := e.world.quotas.newest[e.quota]
	if current != nil && current.revision != e.revision {
		e.ask()
		return
	}
	e.stage = editOver
	if current != nil {
		next := *current
		next.hard, next.surge, next.generation, next.audits = e.hard, e.surge, e.generation, e.audits
		e.world.putQuota(next)
	}
}
