// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package counting

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// unprovedFor is how long a join may be unproved, and for how long joins may keep a ledger from being settled. After
// that they are taken as they are, because a source that can't be listed, or is late for so long, must not keep the
// quota's other resources and namespaces waiting.
const unprovedFor = 5 * time.Second

// join is that a namespace came under a quota. It may have brought objects that the watch of
// their resource has yet to show, because each resource has a watch of its own. Until it is
// certain that the figures have them all, the join is unproved.
type join struct {
	// at is when it was noticed.
	at time.Time
	// version is the namespace's, as it joined.
	version uint64
	// before is the newest version, of any namespace, that had changed the count
	// until then.
	before uint64
	// brought has the version that each source must reach to have all the
	// namespace's objects; nil if they haven't been looked up yet.
	brought map[schema.GroupResource]uint64
}

// join notes that a namespace came under the quota, before anything else is noted of its
// version.
func (t *tally) join(namespace string, version uint64, now time.Time) {
	before := t.touched[Namespaces]
	if earlier, unproved := t.joins[namespace]; unproved {
		before = min(before, earlier.before)
	}
	if len(t.joins) == 0 {
		t.unprovedSince = now
	}
	t.joins[namespace] = join{at: now, version: version, before: before}
	t.joined = max(t.joined, version)
	t.touch(Namespaces, version)
}

// lockedGiveUp takes joins as they are that have been unproved for too long.
func (c *Count) lockedGiveUp(now time.Time) {
	for _, tally := range c.tallies {
		unproved := len(tally.joins)
		maps.DeleteFunc(tally.joins, func(_ string, current join) bool {
			// If namespaces come and go all the time, one join or another is always unproved.
			blocks := current.before < tally.left && now.Sub(tally.unprovedSince) >= unprovedFor
			return blocks || now.Sub(current.at) >= unprovedFor
		})
		if len(tally.joins) < unproved {
			c.lockedTouch(tally)
		}
	}
}

// Joined is a namespace that came under a quota.
type Joined struct {
	Namespace string
	// Version is its resourceVersion, as it joined.
	Version uint64
	// Before is the newest version, of any namespace, that had changed the count
	// until then.
	Before uint64
	// Seen: the namespace's objects have been looked up.
	Seen bool
	// counting distinguishes the targets that the quota was counted for.
	counting uint64
}

// Prove notes the version that each source must reach to have all objects that a
// namespace brought under a quota, as a look after it had joined has shown.
func (c *Count) Prove(quota string, joined Joined, brought map[schema.GroupResource]uint64) {
	c.withTally(quota, func(tally *tally) {
		current, unproved := tally.joins[joined.Namespace]
		if unproved && current.version == joined.Version && current.brought == nil && tally.counting == joined.counting {
			current.brought = maps.Clone(brought)
			tally.joins[joined.Namespace] = current
			c.lockedTouch(tally)
		}
	})
}

// Unproved returns the joins that are unproved, in the order of their versions. It forgets
// the joins that are proved, or that the ledger has counted: those were proved before.
func (v View) Unproved(counted func(version uint64) bool) []Joined {
	var unproved []Joined
	for namespace, current := range v.tally.joins {
		if counted(current.version) || v.has(current.brought) {
			delete(v.tally.joins, namespace)
			continue
		}
		unproved = append(unproved, Joined{
			Namespace: namespace, Version: current.version, Before: current.before, Seen: current.brought != nil,
			counting: v.tally.counting,
		})
	}
	slices.SortFunc(unproved, func(a, b Joined) int { return cmp.Compare(a.Version, b.Version) })
	return unproved
}

// has reports whether each source has come so far.
func (v View) has(brought map[schema.GroupResource]uint64) bool {
	for resource, version := range brought {
		if source, known := v.count.sources[resource]; !known || !source.listed || source.version < version {
			return false
		}
	}
	return brought != nil
}

// lockedBringNone notes that no object of a resource can exist.
func (c *Count) lockedBringNone(of schema.GroupResource) {
	for _, tally := range c.tallies {
		for _, current := range tally.joins {
			if _, awaited := current.brought[of]; awaited {
				delete(current.brought, of)
				c.lockedTouch(tally)
			}
		}
	}
}

// LastJoined is the version in which a namespace last joined the quota, or may have left it and come back; zero
// for never.
func (v View) LastJoined() uint64 { return v.tally.joined }

// LastLeft is the version at which a namespace last left the quota; zero for never.
func (v View) LastLeft() uint64 { return v.tally.left }
