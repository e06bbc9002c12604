// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package waiting

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

const (
	// MaxOwners is how many owners a replica remembers for one quota.
	MaxOwners = 4096
	// MaxBytes bounds the size of all of them, in bytes. With any names, they take less than MaxEncoded then when they
	// are published.
	MaxBytes = 6 << 18
	// evicted is how many are forgotten at once if there are more.
	evicted = 64
	// tombstoneLife is for how long a replica keeps at least that an owner waits no longer, so that
	// a part that says otherwise has come by then.
	tombstoneLife = 15 * time.Second
	// sayShortEvery is how often the published shortage of an owner changes: it may with each refusal.
	sayShortEvery = 10 * time.Second
)

// own has the news that one replica heard itself. The replica publishes it.
//
// Invariant: numbers and bytes agree with records.
type own struct {
	records map[Key]*ownRecord
	// quota name -> how many records
	numbers map[string]int
	// bytes is the size of all records.
	bytes int
	// version changes with each change.
	version uint64
}

type ownRecord struct {
	Record
	// said is when Short was said.
	said time.Time
}

func newOwn() *own {
	return &own{records: map[Key]*ownRecord{}, numbers: map[string]int{}}
}

// refused notes a refusal of an owner of which all replicas together knew this before, and returns the owners
// that had to be forgotten for it.
func (o *own) refused(now time.Time, refusal Refusal, before Record) []Key {
	current := &ownRecord{Record: Record{Refusal: refusal, Since: now, Last: now, Refusals: 1}, said: now}
	if known, ok := o.records[refusal.Key()]; ok {
		current.Ended = known.Ended
		if known.Quota == refusal.Quota && known.Waits() && now.Sub(known.said) < sayShortEvery {
			current.Short, current.said = known.Short, known.said
		}
	}
	if before.Waits() {
		current.Since, current.Refusals = before.Since, before.Refusals+1
	}
	o.put(current)
	return o.fit(refusal.Quota)
}

// ended notes that an owner waits no longer, and returns the owners that had to be forgotten for it.
func (o *own) ended(now time.Time, record Record) []Key {
	current := &ownRecord{Record: Record{Refusal: Refusal{Owner: record.Owner, Quota: record.Quota}, Ended: now}}
	if record.Last.After(now) { // by the clock of another replica
		current.Ended = record.Last
	}
	o.put(current)
	return o.fit(record.Quota)
}

// granted notes that an object of an owner was granted after another replica had refused one. This replica may
// have refused one since. It returns the owners that had to be forgotten for it.
func (o *own) granted(at time.Time, record Record) []Key {
	known, ok := o.records[record.Key()]
	if !ok || !known.Last.After(at) {
		return o.ended(at, record)
	}
	if at.After(known.Ended) {
		current := *known
		current.Ended = at
		o.put(&current)
	}
	return nil
}

func (o *own) put(record *ownRecord) {
	key := record.Key()
	o.remove(key)
	o.records[key] = record
	o.numbers[record.Quota]++
	o.bytes += record.bytes()
	o.version++
}

func (o *own) remove(key Key) {
	record, known := o.records[key]
	if !known {
		return
	}
	delete(o.records, key)
	o.bytes -= record.bytes()
	o.numbers[record.Quota]--
	if o.numbers[record.Quota] == 0 {
		delete(o.numbers, record.Quota)
	}
	o.version++
}

// fit forgets owners until the bounds hold, and returns them.
func (o *own) fit(quota string) []Key {
	var gone []Key
	for o.numbers[quota] > MaxOwners {
		gone = append(gone, o.evict(quota)...)
	}
	for o.bytes > MaxBytes {
		gone = append(gone, o.evict(o.largest(func(record *ownRecord) (string, int) { return record.Quota, record.bytes() }))...)
	}
	return gone
}

// evict forgets the owners that were heard of longest ago, of the namespace that has most of a quota's owners: a
// namespace that fills the list loses its own. It forgets some at once, because it looks at all.
func (o *own) evict(quota string) []Key {
	namespace := o.largest(func(record *ownRecord) (string, int) {
		if record.Quota != quota {
			return "", 0
		}
		return record.Namespace, 1
	})
	var all []*ownRecord
	for _, record := range o.records {
		if record.Quota == quota && record.Namespace == namespace {
			all = append(all, record)
		}
	}
	slices.SortFunc(all, func(a, b *ownRecord) int {
		return cmp.Or(a.heard().Compare(b.heard()), cmp.Compare(a.UID, b.UID))
	})
	gone := make([]Key, 0, evicted)
	for _, record := range all[:max(1, min(evicted, len(all)/2))] {
		o.remove(record.Key())
		gone = append(gone, record.Key())
	}
	return gone
}

// heard is when the newest news came.
func (r *Record) heard() time.Time {
	if r.Ended.After(r.Last) {
		return r.Ended
	}
	return r.Last
}

// largest adds up the numbers of each name, and returns the name that has most; of equals, the first in the alphabet.
func (o *own) largest(counts func(*ownRecord) (name string, number int)) string {
	numbers := map[string]int{}
	for _, record := range o.records {
		name, number := counts(record)
		numbers[name] += number
	}
	return slices.MinFunc(slices.Collect(maps.Keys(numbers)), func(a, b string) int {
		return cmp.Or(cmp.Compare(numbers[b], numbers[a]), cmp.Compare(a, b))
	})
}
