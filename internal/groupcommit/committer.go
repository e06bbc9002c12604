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
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// committer writes one quota's ledger.
type committer struct {
	group *Group
	quota string

	// mu guards what follows.
	mu sync.Mutex
	// queue holds what the next batch consists of, in order of arrival.
	queue []*entry
	// working: a goroutine takes from the queue.
	working bool
	// known is the newest ledger seen. It is only a guess at what is stored;
	// the compare-and-swap tells.
	known Snapshot
	// unsure: a write failed that may have happened all the same, so that known
	// may lack what this process itself has stored.
	unsure bool
	// lastWrite is when the last batch was written, to pace the next.
	lastWrite time.Time
	// lastFailure is why the store last failed; nil since it last succeeded.
	lastFailure error
}

func (c *committer) enqueue(entry *entry) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if entry.charge != nil && len(c.queue) >= c.group.options.MaxWaiting {
		return ErrBusy
	}
	if !c.working && !c.group.start(c.work) {
		return ErrEnded
	}
	c.working = true
	c.queue = append(c.queue, entry)
	return nil
}

// release queues behind the charge that it takes back: the queue is served in
// order, so the release finds it whether it was written or not.
func (c *committer) release(ctx context.Context, key ledger.Key) {
	ctx, cancel := detached(ctx, c.group.options.ChangeTimeout)
	entry := newChange(ctx, func(draft *ledger.Draft) { draft.Release(key) })
	context.AfterFunc(ctx, cancel)
	_ = c.enqueue(entry) // refused only at the end: then the charge expires
}

func (c *committer) observe(snapshot Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known.Version == "" || c.group.store.Newer(snapshot.Version, c.known.Version) {
		c.known = snapshot
	}
}

func (c *committer) gone() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = Snapshot{State: ledger.State{Reservations: c.known.State.Reservations}}
}

func (c *committer) current() Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known
}

// work commits batches until nothing waits.
func (c *committer) work() {
	for {
		batch, more := c.take()
		if !more {
			return
		}
		c.pace()
		// What has gathered during the pause belongs to the batch.
		c.commit(append(batch, c.drain()...))
	}
}

// take returns what waits, or ends the work.
func (c *committer) take() ([]*entry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	batch := c.queue
	c.queue = nil
	c.working = len(batch) > 0
	return batch, c.working
}

func (c *committer) drain() []*entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	batch := c.queue
	c.queue = nil
	return batch
}

// pace keeps writes apart under load. After an idle time it doesn't wait.
func (c *committer) pace() {
	c.mu.Lock()
	pause := c.lastWrite.Add(c.group.options.Pace).Sub(c.group.clock.Now())
	c.mu.Unlock()
	c.sleep(pause)
}

func (c *committer) sleep(pause time.Duration) {
	if pause <= 0 {
		return
	}
	timer := c.group.clock.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-c.group.ctx.Done():
	}
}

// commit answers every entry of the batch, in these phases:
//
//  1. judge all in order on the newest ledger known;
//  2. if any is not granted, read the ledger live, once for all, and judge all
//     again on that: a refusal must not rest on an old state;
//  3. write, if there is anything to write;
//  4. answer all. Only now: a refusal may rest on a charge before it in the
//     batch, and that one counts only once it is written.
//
// When the write meets a conflict or fails, every entry is judged again on a
// live state, once that can be read.
func (c *committer) commit(batch []*entry) {
	backoff := wait.Backoff{Duration: 2 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 10, Cap: time.Second}
	base, fresh := c.current(), false
	usable := base.Version != "" && !c.isUnsure()
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
			if !c.reload(&base) {
				c.sleep(backoff.Step())
				continue
			}
			fresh = true
		}
		switch c.attempt(batch, &base, fresh) {
		case committed:
			return
		case conflicted, failed:
			c.sleep(backoff.Step())
		case outdated:
		}
		usable = false
	}
}

// outcome is how one attempt at a batch ended.
type outcome int

const (
	// committed: all entries are answered.
	committed outcome = iota
	// outdated: an entry is refused on a state that may be old.
	outdated
	// conflicted: another writer was first.
	conflicted
	// failed: the store failed; the write may or may not have happened.
	failed
)

func (c *committer) attempt(batch []*entry, base *Snapshot, fresh bool) outcome {
	draft := ledger.Edit(base.State)
	for _, entry := range batch {
		entry.apply(draft)
	}
	if !fresh && slices.ContainsFunc(batch, func(e *entry) bool { return !e.granted() }) {
		return outdated
	}
	if draft.Changed() {
		if outcome := c.write(len(batch), base, draft.State()); outcome != committed {
			return outcome
		}
	}
	for _, entry := range batch {
		entry.finish()
	}
	return committed
}

func (c *committer) write(size int, base *Snapshot, next ledger.State) outcome {
	ctx, cancel := context.WithTimeout(c.group.ctx, c.group.options.CallTimeout)
	defer cancel()
	start := c.group.clock.Now()
	version, err := c.group.store.Swap(ctx, c.quota, base.Version, next)
	switch {
	case errors.Is(err, ErrConflict):
		c.group.observer.Conflicted(c.quota)
		return conflicted
	case err != nil:
		c.failed(err)
		c.setUnsure()
		return failed
	}
	c.wrote(Snapshot{Version: version, State: next})
	c.group.observer.Committed(c.quota, size, c.group.clock.Since(start))
	return committed
}

func (c *committer) wrote(snapshot Snapshot) {
	c.observe(snapshot)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastWrite = c.group.clock.Now()
	c.lastFailure = nil
}

func (c *committer) failed(err error) {
	c.mu.Lock()
	c.lastFailure = err
	c.mu.Unlock()
	c.group.observer.Failed(c.quota, err)
}

func (c *committer) setUnsure() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unsure = true
}

func (c *committer) isUnsure() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unsure
}

func (c *committer) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastFailure
}

// reload replaces base by a live read.
func (c *committer) reload(base *Snapshot) bool {
	ctx, cancel := context.WithTimeout(c.group.ctx, c.group.options.CallTimeout)
	defer cancel()
	live, err := c.group.store.Load(ctx, c.quota)
	if err != nil {
		c.failed(err)
		return false
	}
	if live.Version == "" {
		// The ledger is gone. What was in flight still is: keep it for the
		// ledger that the next count creates.
		live.State.Reservations = base.State.Reservations
	}
	*base = live
	c.learn(live)
	return true
}

// learn keeps what a live read returned, unless something newer was seen since.
func (c *committer) learn(live Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastFailure, c.unsure = nil, false
	if live.Version == "" || c.known.Version == "" || !c.group.store.Newer(c.known.Version, live.Version) {
		c.known = live
	}
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
