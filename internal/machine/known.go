// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"time"
)

// known is the machine's knowledge of the stored ledger. It is only a guess at
// the stored version; the compare-and-swap decides.
type known struct {
	// snapshot is the newest ledger seen.
	snapshot Snapshot
	// judged is the version that the last batch was judged on first, or its own write after that.
	judged Version
	// foreign is when another replica's write was last met or seen; zero for never.
	foreign time.Time
	// seen is the version that foreign was last set for, which may turn out to be
	// this process's own: a watch may be faster than a reply.
	seen Version
	// before is the value of foreign before that.
	before time.Time
	doubt  doubt
	// spec is the version of the quota's spec when it was last read. That read began at specRead; zero for never.
	spec     Spec
	specRead time.Time
	// gone: since the call under way began, a watch has shown that there is no
	// ledger. The reply to the call may be of a ledger from before that.
	gone bool
}

// doubt is whether a write failed that may have happened all the same, or may still happen.
type doubt int

const (
	// none: every write has succeeded, or failed for sure.
	none doubt = iota
	// unwritten: the ledger was read since. The write may still happen, until a later one succeeds.
	unwritten
	// unread: the snapshot may lack this process's own writes.
	unread
)

// usable reports whether a batch may be judged on the snapshot first.
func (k *known) usable() bool { return !k.snapshot.Version.IsZero() && k.doubt != unread }

// isFresher reports whether a newer ledger was seen since the last batch was taken.
func (k *known) isFresher() bool {
	return !k.snapshot.Version.IsZero() && k.snapshot.Version != k.judged
}

// wrote takes a ledger that this machine has written. There is no more room in it for the parked charges than in the
// one before.
func (k *known) wrote(written Snapshot) {
	if !k.isFresher() && k.keep(written) {
		k.judged = written.Version
	}
	k.keep(written)
	k.own(written.Version)
	k.forgetIfGone(written.Version)
}

// keep takes a snapshot, unless a newer one is known.
func (k *known) keep(snapshot Snapshot) bool {
	newer := snapshot.Version.After(k.snapshot.Version)
	if newer {
		k.snapshot = snapshot
	}
	return newer
}

// forgetIfGone forgets the version that a call returned, if a watch has shown meanwhile that there is no
// ledger. The next batch reads the ledger.
func (k *known) forgetIfGone(returned Version) {
	if k.gone && k.snapshot.Version == returned {
		k.snapshot = Snapshot{}
	}
}

// own takes back that a version is another replica's.
func (k *known) own(version Version) {
	if k.seen == version {
		k.foreign = k.before
	}
}

// other notes that another replica wrote a version; zero if it isn't known which.
func (k *known) other(version Version, now time.Time) {
	k.before, k.foreign, k.seen = k.foreign, now, version
}

func (k *known) contended(now time.Time) bool { return now.Sub(k.foreign) < contendedFor }

// learn takes the result of a live read, unless something newer was seen since
// the read. The read began when the machine knew version asked.
//
// A live read never returns less than was known when it began, unless the object
// was deleted and created again. If it does, the store was restored from a
// backup: that is an error, but the stored ledger counts.
func (k *known) learn(live Snapshot, asked Version) error {
	k.doubt = min(k.doubt, unwritten)
	live.Spec = nil // true when it was read, and not for later batches
	current := k.snapshot.Version
	backwards := !live.Version.IsZero() && live.Version.UID == asked.UID && asked.After(live.Version)
	if live.Version.IsZero() || backwards || !current.After(live.Version) {
		k.snapshot = live
	}
	if backwards {
		return fmt.Errorf("%w: from %d to %d", ErrBackwards, asked.ResourceVersion, live.Version.ResourceVersion)
	}
	return nil
}
