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
	"time"
)

// known is what a committer knows of the stored ledger. It is only a guess at
// what is stored; the compare-and-swap tells. Guarded by the committer's mu.
type known struct {
	// snapshot is the newest ledger seen.
	snapshot Snapshot
	// fresher: something newer was seen since the last batch was taken.
	fresher bool
	// foreign is when another replica's write was last met or seen; zero for never.
	foreign time.Time
	// seen is the version that foreign was last set for, which may turn out to be
	// this process's own: a watch may be faster than an answer.
	seen string
	// before is what foreign was before that.
	before time.Time
	// unsure: a write failed that may have happened all the same, so that the
	// snapshot may lack what this process itself has stored.
	unsure bool
	// failure is why the store last failed; nil since it last succeeded.
	failure error
}

// observe takes a ledger that another process wrote: there may be room in it for
// those that are parked.
func (c *committer) observe(snapshot Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lockedKeep(snapshot) {
		c.known.fresher = true
		c.lockedForeign(snapshot.Version)
		c.lockedHurry()
		c.look()
	}
}

// wrote takes a ledger that this committer wrote.
func (c *committer) wrote(snapshot Snapshot, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lockedKeep(snapshot)
	c.lockedOwn(snapshot.Version)
	c.lastWrite, c.known.failure = took, nil
}

// replaced takes a ledger that this process wrote outside of a batch.
func (c *committer) replaced(snapshot Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lockedOwn(snapshot.Version)
	if c.lockedKeep(snapshot) {
		c.known.fresher = true
		c.lockedHurry()
		c.look()
	}
}

// lockedOwn takes back that a version is another replica's.
func (c *committer) lockedOwn(version string) {
	if c.known.seen == version {
		c.known.foreign = c.known.before
	}
}

func (c *committer) lockedForeign(version string) {
	c.known.before, c.known.foreign, c.known.seen = c.known.foreign, c.group.clock.Now(), version
}

// conflicted notes that another replica was first.
func (c *committer) conflicted() {
	c.mu.Lock()
	c.lockedForeign("")
	c.mu.Unlock()
	c.report(func(observer Observer) { observer.Conflicted(c.quota) })
}

// catchUp replaces base by what was seen since, if anything was. Not all that was
// written may have been seen yet: the swap tells.
func (c *committer) catchUp(base *Snapshot) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	is := c.known.snapshot
	if is.Version == "" || c.known.unsure || !c.group.store.Newer(is.Version, base.Version) {
		return false
	}
	*base = is
	return true
}

// lockedKeep keeps a snapshot, unless it knows a newer one.
func (c *committer) lockedKeep(snapshot Snapshot) bool {
	newer := c.known.snapshot.Version == "" || c.group.store.Newer(snapshot.Version, c.known.snapshot.Version)
	if newer {
		c.known.snapshot = snapshot
	}
	return newer
}

func (c *committer) gone() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known.snapshot = Snapshot{}
}

func (c *committer) current() Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known.snapshot
}

// base returns what the next batch is judged on first, and whether it may be.
func (c *committer) base() (snapshot Snapshot, usable bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known.snapshot, c.known.snapshot.Version != "" && !c.known.unsure
}

// failed notes why the store failed. After a write that failed, this process
// may have stored what it doesn't know of.
func (c *committer) failed(err error, writing bool) {
	c.mu.Lock()
	c.known.failure = err
	c.known.unsure = c.known.unsure || writing
	c.mu.Unlock()
	c.report(func(observer Observer) { observer.Failed(c.quota, err) })
}

func (c *committer) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known.failure
}

// reload replaces base by a live read.
func (c *committer) reload(base *Snapshot) error {
	ctx, cancel := context.WithTimeout(c.group.ctx, c.group.options.CallTimeout)
	defer cancel()
	live, err := c.group.store.Load(ctx, c.quota)
	if err != nil {
		c.failed(err, false)
		return err
	}
	*base = live
	c.learn(live)
	return nil
}

// learn keeps what a live read returned, unless something newer was seen since.
func (c *committer) learn(live Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known.failure, c.known.unsure = nil, false
	live.Spec = nil // true when it was read, and not for later batches
	is := c.known.snapshot.Version
	if live.Version == "" || is == "" || !c.group.store.Newer(is, live.Version) {
		c.known.snapshot = live
		c.known.fresher = c.known.fresher || live.Version != is
	}
}
