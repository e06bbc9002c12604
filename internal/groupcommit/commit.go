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

package groupcommit

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// commit answers every entry of the batch, or parks it, in these phases:
//
//  1. judge all in order on the newest ledger known;
//  2. if any is refused for good, read the ledger live, once for all, and judge
//     all again on that: a refusal must not rest on an old state;
//  3. write, if there is anything to write;
//  4. answer all but those that are denied and still have patience: there may be
//     room for them in a moment. Only now: a refusal may rest on a charge before
//     it in the batch, and that one counts only once it is written.
//
// When the write meets a conflict, another replica was first: every entry is
// judged again on what that wrote, seen or read, and at once, for its turn lasts
// only until that replica writes again. When the write fails, every entry is
// judged again on a live state, once that can be read. One that can't be understood
// fails them all.
func (c *committer) commit(batch []*entry) {
	backoff := wait.Backoff{Duration: 2 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 10, Cap: time.Second}
	fresh := false
	base, usable := c.base()
	for {
		batch = dropAbandoned(batch)
		if len(batch) == 0 {
			return
		}
		if c.group.ctx.Err() != nil {
			failAll(batch, c.group.ctx.Err())
			return
		}
		if !usable {
			switch err := c.reload(&base); {
			case errors.Is(err, ErrUnreadable):
				failAll(batch, err)
				return
			case err != nil:
				c.sleep(backoff.Step(), nil)
				continue
			}
			fresh = true
		}
		usable = false
		switch c.attempt(batch, &base, fresh) {
		case committed:
			return
		case conflicted:
			usable = c.catchUp(&base)
			fresh = false
		case failed:
			c.sleep(backoff.Step(), nil)
		case outdated:
		}
	}
}

// outcome is how one attempt at a batch ended.
type outcome int

const (
	// committed: all entries are answered or parked.
	committed outcome = iota
	// outdated: an entry is refused on a state that may be old.
	outdated
	// conflicted: another writer was first.
	conflicted
	// failed: the store failed; the write may or may not have happened.
	failed
)

func (c *committer) attempt(batch []*entry, base *Snapshot, fresh bool) outcome {
	draft, now := ledger.Edit(base.State), c.group.clock.Now()
	for _, entry := range batch {
		entry.apply(draft, base)
	}
	if !fresh && slices.ContainsFunc(batch, func(e *entry) bool { return !e.granted() && !e.patient(now) }) {
		return outdated
	}
	if draft.Changed() {
		ends := draft.Ends()
		if outcome := c.write(len(batch), base, draft.State()); outcome != committed {
			return outcome
		}
		c.report(func(observer Observer) { observer.Ended(c.quota, ends) })
	}
	due := now
	if fresh {
		// The live read was for one that is refused. Who would ask for the next one
		// within a pace is refused on this.
		due = now.Add(c.group.options.Pace)
	}
	var parked []*entry
	for _, entry := range batch {
		if entry.patient(due) {
			parked = append(parked, entry)
			continue
		}
		entry.finish()
	}
	c.park(parked)
	return committed
}

func (c *committer) write(size int, base *Snapshot, next ledger.State) outcome {
	ctx, cancel := context.WithTimeout(c.group.ctx, c.group.options.CallTimeout)
	defer cancel()
	start := c.group.clock.Now()
	version, err := c.group.store.Swap(ctx, c.quota, base.Version, next)
	switch {
	case errors.Is(err, ErrConflict):
		c.conflicted()
		return conflicted
	case err != nil:
		c.failed(err, true)
		return failed
	}
	took := c.group.clock.Since(start)
	c.wrote(Snapshot{Version: version, State: next}, took)
	c.report(func(observer Observer) { observer.Committed(c.quota, size, took) })
	return committed
}

func dropAbandoned(batch []*entry) []*entry {
	return slices.DeleteFunc(batch, func(e *entry) bool {
		if e.ctx.Err() == nil {
			return false
		}
		e.fail(context.Cause(e.ctx))
		return true
	})
}

func failAll(batch []*entry, err error) {
	for _, entry := range batch {
		entry.fail(err)
	}
}
