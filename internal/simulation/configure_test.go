/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package simulation

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// writing is how the leader writes the webhook configuration. If there is none, the API
// server asked about nothing meanwhile: every quota is counted anew first.
type writing struct {
	previous uint64
	next     configuration
	// recounts are the quotas that are still to be recounted.
	recounts []int
	reply    *reply
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

// isUpToDate reports whether the stored configuration asks what it should.
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
		if stored.deleted && known != nil && !c.replica.world.mutation.noRecount {
			c.write.recounts = append(c.write.recounts, q)
		}
	}
}

func (w *writing) isReady() bool { return w.reply == nil || w.reply.came }

func (c *counter) goOnWriting(outcome outcome) {
	writing, w := c.write, c.replica.world
	switch {
	case writing.reply != nil:
		failed := writing.reply.answer.Err != nil
		writing.reply = nil
		if failed {
			c.write = nil
		}
	case outcome == vanishes:
		c.write = nil
	case len(writing.recounts) > 0:
		newest := map[schema.GroupResource]uint64{ledger.Namespaces: w.newestNamespace()}
		for source := range maxSources {
			newest[w.sources[source].GroupResource()] = w.newestOf(source)
		}
		q := writing.recounts[0]
		writing.recounts = writing.recounts[1:]
		writing.reply = c.replica.driver(q).do(func(id machine.RequestID) machine.Event {
			return machine.Edit{ID: id, Change: func(draft *ledger.Draft) { draft.Recount(newest) }}
		})
	default:
		w.writeConfiguration(writing.previous, writing.next)
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
	stage      editStage
	revision   uint64
	generation int64
	reply      *reply
	tries      int
}

type editStage int

const (
	editAsked editStage = iota
	editAllowed
	editOver
)

// ask asks the webhook. If a limit is lowered, it first has the ledger bind.
func (e *edit) ask() {
	current := e.world.quotas.newest[e.quota]
	e.tries++
	if current == nil || e.tries > 3 || !e.replica.alive {
		e.stage = editOver
		return
	}
	e.revision, e.generation = current.revision, current.generation+1
	if e.hard.max(current.hard) == e.hard || e.world.mutation.noFence {
		e.stage = editAllowed
		return
	}
	fence := ledger.Fence{
		Generation: e.generation, Hard: e.world.hard(e.quota, e.hard), Until: e.replica.now().Add(e.world.life()).Truncate(time.Second),
	}
	e.stage = editAsked
	e.reply = e.replica.driver(e.quota).do(func(id machine.RequestID) machine.Event {
		return machine.Edit{ID: id, Change: func(draft *ledger.Draft) { draft.Raise(fence) }}
	})
}

func (e *edit) isReady() bool { return e.stage == editAsked && e.reply.came }

// goOn takes the answer.
func (e *edit) goOn() {
	if e.reply.answer.Err != nil {
		e.stage = editOver
		return
	}
	e.stage = editAllowed
}

// persist stores the edit. If somebody else has changed the quota meanwhile, the API server
// begins again.
func (e *edit) persist() {
	current := e.world.quotas.newest[e.quota]
	if current != nil && current.revision != e.revision {
		e.ask()
		return
	}
	e.stage = editOver
	if current != nil {
		next := *current
		next.hard, next.generation = e.hard, e.generation
		e.world.putQuota(next)
	}
}
