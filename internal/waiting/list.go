// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package waiting

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/utils/lru"
)

// mostGrants is how many grants a replica remembers. News of a refusal that came before a grant takes one or two
// seconds from another replica.
const mostGrants = 4096

// Change is the report of a change in a List.
type Change struct {
	// Quotas are those whose owners changed, or tried again.
	Quotas []string
	// Shown: it changes the figures that people see, not only when an owner was refused last.
	Shown bool
}

// List has the owners that wait, as far as this replica knows. All methods may be called concurrently.
type List struct {
	// grants has when objects of owners were granted last by this replica. A controller tries again within
	// milliseconds, and often another replica grants an object that one has just refused, before it hears of the
	// refusal. Key -> time.Time
	grants *lru.Cache

	// mu guards the fields below.
	mu  sync.RWMutex
	own *own
	// replica -> key -> its published records
	parts map[string]map[Key]Record
	// Invariant: these are the owners that wait by own and parts together.
	// quota name -> key -> the record
	byQuota map[string]map[Key]Record
	// key -> quota name
	quotas map[Key]string
	// changed is told of changes; never nil.
	changed func(Change)
}

// NewList makes an empty List.
func NewList() *List {
	return &List{
		grants: lru.New(mostGrants), own: newOwn(), parts: map[string]map[Key]Record{}, byQuota: map[string]map[Key]Record{},
		quotas:  map[Key]string{},
		changed: func(Change) {},
	}
}

// OnChange has the function called after each change. It must not block.
func (l *List) OnChange(changed func(Change)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changed = changed
}

// Refused notes that a quota refused an object of an owner.
func (l *List) Refused(now time.Time, refusal Refusal) {
	l.mu.Lock()
	before, _ := l.waits(refusal.Key())
	change := &change{}
	for _, gone := range l.own.refused(now, refusal, before) {
		l.merge(gone, change)
	}
	change.tried(refusal.Quota)
	l.merge(refusal.Key(), change)
	l.unlock(change)
}

// Granted notes that an object of an owner was granted, so that it waits no longer.
func (l *List) Granted(now time.Time, key Key) {
	// Record the grant before the lookup: a concurrent Follow must see it.
	l.grants.Add(key, now)
	l.end(now, key, func(Record) bool { return true })
}

// Over notes that an owner lacked nothing at a time. If an object of it was refused later, it waits on.
func (l *List) Over(at time.Time, key Key) {
	l.end(at, key, func(record Record) bool { return !record.Last.After(at) })
}

// end notes that an owner waits no longer, if its record shows that.
func (l *List) end(at time.Time, key Key, ends func(Record) bool) {
	l.mu.RLock()
	_, waits := l.waits(key)
	l.mu.RUnlock()
	if !waits {
		return
	}
	l.mu.Lock()
	change := &change{}
	if record, waits := l.waits(key); waits && ends(record) { // still
		l.mergeAll(l.own.ended(at, record), change)
		l.merge(key, change)
	}
	l.unlock(change)
}

// Follow takes another replica's published records, in place of its earlier ones.
func (l *List) Follow(replica string, records []Record) {
	l.mu.Lock()
	before := l.parts[replica]
	part := make(map[Key]Record, len(records))
	for _, record := range records {
		part[record.Key()] = record
	}
	l.parts[replica] = part
	if len(part) == 0 {
		delete(l.parts, replica)
	}
	change := &change{}
	for key := range before {
		if _, ok := part[key]; !ok {
			l.merge(key, change)
		}
	}
	for key, record := range part {
		if earlier, ok := before[key]; ok && earlier.isAsNewAs(&record) {
			continue // each admission waits for this lock
		}
		l.mergeAll(l.compare(&record), change)
		l.merge(key, change)
	}
	l.unlock(change)
}

func (l *List) mergeAll(keys []Key, change *change) {
	for _, key := range keys {
		l.merge(key, change)
	}
}

// compare brings the own news of an owner up to date with another replica's news of it, and returns the owners that had
// to be forgotten for that.
func (l *List) compare(record *Record) []Key {
	key := record.Key()
	if known, ok := l.own.records[key]; ok && record.Ended.After(known.heard()) {
		l.own.remove(key) // they are of no use any more
	}
	if granted, ok := l.lastGrant(key); ok && record.Waits() && granted.After(record.Last) {
		return l.own.granted(granted, *record)
	}
	return nil
}

// lastGrant returns when this replica granted an object of an owner last, if that was of late.
func (l *List) lastGrant(key Key) (time.Time, bool) {
	known, _ := l.grants.Get(key)
	granted, ok := known.(time.Time)
	return granted, ok
}

// Adopt makes another replica's published records this one's own: that replica
// has gone.
func (l *List) Adopt(replica string) {
	l.mu.Lock()
	part := l.parts[replica]
	delete(l.parts, replica)
	change := &change{}
	for key, record := range part {
		if known, ok := l.own.records[key]; !ok || record.heard().After(known.heard()) {
			l.own.put(&ownRecord{Record: record})
			for _, gone := range l.own.fit(record.Quota) {
				l.merge(gone, change)
			}
		}
		l.merge(key, change)
	}
	l.unlock(change)
}

// Sweep forgets owners without news for longer than their controller's longest pause, and that owners wait no longer
// once no replica says that they do.
func (l *List) Sweep(now time.Time) {
	l.mu.Lock()
	change := &change{}
	for key, record := range l.own.records {
		if record.Waits() && !record.isOver(now) ||
			!record.Waits() && (now.Sub(record.Ended) < tombstoneLife || l.isInParts(key)) {
			continue
		}
		l.own.remove(key)
		l.merge(key, change)
	}
	for _, part := range l.parts {
		for key, record := range part {
			if record.Waits() && record.isOver(now) {
				delete(part, key)
				l.merge(key, change)
			}
		}
	}
	l.unlock(change)
}

// Own returns this replica's own records, to be published, and their version.
func (l *List) Own() (records []Record, version uint64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	records = make([]Record, 0, len(l.own.records))
	for _, record := range l.own.records {
		records = append(records, record.Record)
	}
	return records, l.own.version
}

// Version is that of Own.
func (l *List) Version() uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.own.version
}

// Waiting returns the owners that wait for a quota, in the order of their first refusals.
func (l *List) Waiting(quota string) []Record {
	l.mu.RLock()
	records := slices.Collect(maps.Values(l.byQuota[quota]))
	l.mu.RUnlock()
	slices.SortFunc(records, inOrder)
	return records
}

// inOrder orders by the first refusal.
func inOrder(a, b Record) int {
	return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.UID, b.UID))
}

// All returns all owners that wait, in no order.
func (l *List) All() []Record {
	l.mu.RLock()
	defer l.mu.RUnlock()
	all := make([]Record, 0, len(l.quotas))
	for key, quota := range l.quotas {
		all = append(all, l.byQuota[quota][key])
	}
	return all
}

// Summary returns how many owners wait for a quota, and since when the first of them does.
func (l *List) Summary(quota string) (owners int, since time.Time) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, record := range l.byQuota[quota] {
		if since.IsZero() || record.Since.Before(since) {
			since = record.Since
		}
	}
	return len(l.byQuota[quota]), since
}

// waits returns the record of an owner that waits.
func (l *List) waits(key Key) (Record, bool) {
	quota, waits := l.quotas[key]
	return l.byQuota[quota][key], waits
}

func (l *List) isInParts(key Key) bool {
	for _, part := range l.parts {
		if record, ok := part[key]; ok && record.Waits() {
			return true
		}
	}
	return false
}

// merge brings up to date whether an owner waits. The newest refusal has the quota, the newest end decides whether the
// owner still waits.
func (l *List) merge(key Key, change *change) {
	before, waited := l.waits(key)
	merged := Record{}
	add := func(record *Record) {
		if record.Last.After(merged.Last) {
			merged.Refusal, merged.Last = record.Refusal, record.Last
		}
		if record.Ended.After(merged.Ended) {
			merged.Ended = record.Ended
		}
	}
	l.each(key, add)
	waits := merged.Waits()
	if waits {
		l.each(key, func(record *Record) {
			if record.Last.After(merged.Ended) && (merged.Since.IsZero() || record.Since.Before(merged.Since)) {
				merged.Since = record.Since
			}
			merged.Refusals = max(merged.Refusals, record.Refusals)
		})
	}
	if waited {
		l.drop(before.Quota, key)
	}
	if waits {
		l.put(key, merged)
	}
	change.note(before, waited, merged, waits)
}

// each calls a function with everything that is known of an owner.
func (l *List) each(key Key, do func(*Record)) {
	if record, ok := l.own.records[key]; ok {
		do(&record.Record)
	}
	for _, part := range l.parts {
		if record, ok := part[key]; ok {
			do(&record)
		}
	}
}

func (l *List) put(key Key, record Record) {
	if l.byQuota[record.Quota] == nil {
		l.byQuota[record.Quota] = map[Key]Record{}
	}
	l.byQuota[record.Quota][key] = record
	l.quotas[key] = record.Quota
}

func (l *List) drop(quota string, key Key) {
	delete(l.quotas, key)
	delete(l.byQuota[quota], key)
	if len(l.byQuota[quota]) == 0 {
		delete(l.byQuota, quota)
	}
}

// unlock ends a change, and reports it.
func (l *List) unlock(change *change) {
	changed := l.changed
	l.mu.Unlock()
	if len(change.quotas) > 0 {
		changed(Change{Quotas: slices.Sorted(maps.Keys(change.quotas)), Shown: change.shown})
	}
}

// change gathers the parts of a Change.
type change struct {
	quotas map[string]bool
	shown  bool
}

func (c *change) tried(quota string) {
	if c.quotas == nil {
		c.quotas = map[string]bool{}
	}
	c.quotas[quota] = true
}

func (c *change) note(before Record, waited bool, after Record, waits bool) {
	if waited && (!waits || before.Quota != after.Quota) {
		c.tried(before.Quota)
		c.shown = true
	}
	if !waits {
		return
	}
	if !waited || before.Quota != after.Quota || !before.Since.Equal(after.Since) || !quota.Equals(before.Short, after.Short) {
		c.tried(after.Quota)
		c.shown = true
	} else if !before.Last.Equal(after.Last) {
		c.tried(after.Quota)
	}
}
