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
	"math"
	"slices"
	"sync"
	"time"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// committer writes one quota's ledger.
type committer struct {
	group *Group
	quota string
	// wake tells the goroutine that works to look again when its next batch is due.
	wake chan struct{}

	// mu guards what follows.
	mu sync.Mutex
	// queue holds what has arrived since the last batch, in order of arrival.
	queue []*entry
	// charges is how many of the queue are charges.
	charges int
	// parked are charges that would be denied and whose patience isn't over, in
	// order of arrival. They are in every batch that may have room for them.
	parked []*entry
	// working: a goroutine takes from the queue.
	working bool
	// lastBatch is when the last batch began, or where others write too, when it
	// ended; lastWrite how long its write took; lastCharges how many charges had
	// arrived for it.
	lastBatch   time.Time
	lastWrite   time.Duration
	lastCharges int
	// forgotten: the quota is gone, and the observer is told nothing more of it.
	forgotten bool

	known known
}

func newCommitter(group *Group, quota string) *committer {
	return &committer{group: group, quota: quota, wake: make(chan struct{}, 1)}
}

func (c *committer) enqueue(entry *entry) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if entry.charge != nil && len(c.queue)+len(c.parked) >= c.group.options.MaxWaiting {
		return ErrBusy
	}
	if !c.working && !c.group.start(c.work) {
		return ErrEnded
	}
	c.working = true
	entry.lazy = entry.canWait != nil && entry.canWait(c.known.snapshot.State)
	c.queue = append(c.queue, entry)
	if entry.charge != nil {
		c.charges++
	}
	c.look()
	return nil
}

// hurry asks what waits whether it still can.
func (c *committer) hurry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lockedHurry()
}

func (c *committer) lockedHurry() {
	for _, entry := range c.queue {
		if entry.lazy && !entry.canWait(c.known.snapshot.State) {
			entry.lazy = false
			c.look()
		}
	}
}

// look wakes the goroutine that works, if there is one.
func (c *committer) look() {
	select {
	case c.wake <- struct{}{}:
	default: // it is going to look anyway
	}
}

// report tells the observer of what happened, unless the quota was forgotten: what
// is counted of it afterwards would stay for good.
func (c *committer) report(tell func(Observer)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.forgotten {
		tell(c.group.observer)
	}
}

func (c *committer) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgotten = true
}

// release takes a charge back. The charge is abandoned by now: it is written
// already, in a batch that is under way, or never.
func (c *committer) release(ctx context.Context, key ledger.Key) {
	ctx, cancel := detached(ctx, c.group.options.ChangeTimeout)
	entry := newChange(ctx, func(draft *ledger.Draft) { draft.Release(key) })
	context.AfterFunc(ctx, cancel)
	_ = c.enqueue(entry) // refused only at the end: then the charge expires
}

// work commits batches until nothing waits.
func (c *committer) work() {
	for {
		pause, more := c.untilNextBatch()
		switch {
		case !more:
			return
		case pause > 0:
			c.sleep(pause, c.wake)
		default:
			c.commit(c.take())
			c.ended()
		}
	}
}

// untilNextBatch returns how long the next batch has to wait, or ends the work.
func (c *committer) untilNextBatch() (pause time.Duration, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.working = len(c.queue)+len(c.parked) > 0
	if c.group.ctx.Err() != nil {
		return 0, c.working
	}
	return c.lockedPause(c.group.clock.Now()), c.working
}

// lockedPause is what keeps batches apart under load, and lets nobody wait for
// nothing. Who charges one object after the other comes back soon after a batch
// was answered: when as many charges wait as the last batch had, nobody else is
// expected, and the batch is due, though not sooner than its size allows. What
// makes nobody wait, such as a settle, is due at half the pace.
//
// Where another replica writes too, the pace is half as fast, so that the ledger
// is written no more often by both, and a pause twice as long as the write took
// comes after each: in it one that was too late can read and write. A busy one, which
// always knows its own last write first, once kept the leader from its turn until
// hundreds of reservations were unsettled.
func (c *committer) lockedPause(now time.Time) time.Duration {
	options, since := c.group.options, now.Sub(c.lastBatch)
	pace, turn := options.Pace, time.Duration(0)
	if c.lockedContended(now) {
		pace *= 2
		if c.lastCharges > 1 { // a lone client comes back no sooner anyway
			turn = min(2*c.lastWrite, maxTurn)
		}
	}
	full := max(pace, turn) - since
	short := max(min(pace/2, options.PaceEach*time.Duration(max(c.lastCharges-1, 0))), turn) - since
	pause := time.Duration(math.MaxInt64)
	switch {
	case c.charges > 0 && c.charges >= c.lastCharges:
		pause = short
	case len(c.queue) > 0 && len(c.parked) > 0:
		pause = short // it may make room for those
	case c.charges > 0:
		pause = full
	case slices.ContainsFunc(c.queue, func(e *entry) bool { return !e.lazy }):
		pause = max(options.Pace/2, turn) - since // it may make room for another replica's
	case len(c.queue) > 0:
		pause = lazyPaces*options.Pace - since
	}
	if len(c.parked) > 0 {
		pause = min(pause, lockedPatience(c.parked).Sub(now))
		if c.known.fresher {
			pause = min(pause, short)
		}
	}
	return pause
}

func (c *committer) ended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.group.clock.Now(); c.lockedContended(now) {
		c.lastBatch = now
	}
}

// lockedContended tells whether another replica wrote a moment ago.
func (c *committer) lockedContended(now time.Time) bool {
	return now.Sub(c.known.foreign) < contendedFor
}

// lockedPatience is when the first of the parked must be answered.
func lockedPatience(parked []*entry) time.Time {
	first := parked[0].patience
	for _, entry := range parked[1:] {
		if entry.patience.Before(first) {
			first = entry.patience
		}
	}
	return first
}

// take returns the next batch. Changes come first, for they may make room; then
// the charges, in order of arrival. No change depends on a charge in its batch:
// one that is being released has been abandoned.
func (c *committer) take() []*entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.group.clock.Now()
	batch := make([]*entry, 0, len(c.parked)+len(c.queue))
	for _, entry := range c.queue {
		if entry.charge == nil {
			batch = append(batch, entry)
		}
	}
	if len(batch) > 0 || c.lockedParkedDue(now) {
		batch, c.parked = append(batch, c.parked...), nil
	}
	c.known.fresher = false
	for _, entry := range c.queue {
		if entry.charge != nil {
			batch = append(batch, entry)
		}
	}
	c.lastBatch, c.lastCharges, c.lastWrite = now, c.charges, 0
	c.queue, c.charges = nil, 0
	return batch
}

// lockedParkedDue tells whether the parked belong to a batch without changes. What
// they were denied on still holds, unless something newer was seen: charges alone
// make no room.
func (c *committer) lockedParkedDue(now time.Time) bool {
	return len(c.parked) > 0 &&
		(c.known.fresher || !now.Before(lockedPatience(c.parked)) || c.group.ctx.Err() != nil)
}

// contendedFor is how long after another replica's write it is left its turn.
const contendedFor = 10 * time.Second

// maxTurn bounds the pause that is left to other replicas.
const maxTurn = 200 * time.Millisecond

// lazyPaces is how many paces a lazy change waits for others. Each write of a
// leader that only counts may cost a busy replica a conflict.
const lazyPaces = 4

// crowd is how many charges that wait halve the patience of one more.
const crowd = 30

// patience is how long a charge that arrives now waits for room. The more wait
// already, the less: what comes free is theirs.
func (c *committer) patience() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.group.options.Patience * crowd / time.Duration(crowd+len(c.parked)+c.charges)
}

// park keeps entries for the batches to come.
func (c *committer) park(entries []*entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parked = append(c.parked, entries...)
}

// sleep returns after the pause, when woken, or when the Group ends.
func (c *committer) sleep(pause time.Duration, wake <-chan struct{}) {
	timer := c.group.clock.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-wake:
	case <-c.group.ctx.Done():
	}
}
