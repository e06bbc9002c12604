// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

const (
	// mostQuotas is how many quotas a part knows, and mostEntries how much of all of them: about 250 bytes each.
	mostQuotas, mostEntries = 5000, 60000
	// pause is the least time between two writes of what is published. A process that is killed loses the refusals of
	// so long; peaks are known by all replicas, because each of them follows the ledgers. hurry is that if somebody
	// edited a quota.
	pause, hurry = 10 * time.Second, time.Second
)

// key identifies a quota. One of the same name that was deleted is another one.
type key struct {
	name string
	uid  types.UID
}

// entry is what this process noted itself of one quota, or has adopted.
type entry struct {
	// mu guards what follows.
	mu     sync.Mutex
	record *record
	// stored are the specs that this process has seen.
	stored stored
}

// Recorder remembers what quotas have seen. All methods may be called concurrently.
type Recorder struct {
	// version counts the changes that must be published, and edited is that of the newest edit.
	version, edited atomic.Uint64
	// full: there is no room for quotas, resources and namespaces that aren't known.
	full atomic.Bool

	// mu guards what follows. It comes before that of an entry.
	mu sync.RWMutex
	// id is that of the own part.
	id string
	// ids is how many the own part has had.
	ids int
	// adopted are the ids of the parts that the own one includes.
	// id -> when it was adopted, in milliseconds since 1970
	adopted map[string]int64
	own     map[key]*entry
	// replica -> what it published
	parts map[string]*part
	// active are the parts that count.
	active []*part
	// today is the day of the last sweep.
	today int32
	// changed is told of quotas of which something else is known; never nil.
	changed func(quotas []string)
}

// New makes a Recorder of a process. No other process may have the name.
func New(process string) *Recorder {
	return &Recorder{
		id: process, adopted: map[string]int64{}, own: map[key]*entry{}, parts: map[string]*part{}, changed: func([]string) {},
	}
}

// OnChange has the function called with the quotas of which more is known than before, but for what is held. It must not
// block, and must be set before anything is recorded.
func (r *Recorder) OnChange(changed func(quotas []string)) { r.changed = changed }

// Holds notes what is used and reserved of a quota.
func (r *Recorder) Holds(at time.Time, quota string, uid types.UID, amounts corev1.ResourceList) {
	of := r.entry(quota, uid)
	if of == nil {
		return
	}
	of.mu.Lock()
	changed := of.record.hold(at.UnixMilli(), amounts, !r.full.Load())
	of.mu.Unlock()
	if changed {
		r.version.Add(1)
	}
}

// Refused notes a request that didn't fit.
func (r *Recorder) Refused(at time.Time, refusal Refusal) {
	of := r.entry(refusal.Quota, refusal.UID)
	if of == nil {
		return
	}
	of.mu.Lock()
	of.record.miss(at.UnixMilli(), &refusal, !r.full.Load())
	of.mu.Unlock()
	r.version.Add(1)
	r.changed([]string{refusal.Quota})
}

// Edited notes what somebody asked to change.
func (r *Recorder) Edited(edit Edit) {
	of := r.entry(edit.Quota, edit.UID)
	if of == nil {
		return
	}
	of.mu.Lock()
	of.record.touch(edit.At.UnixMilli())
	of.record.edits = newestEdits(append(of.record.edits, edit))
	of.mu.Unlock()
	r.edited.Store(r.version.Add(1))
	r.changed([]string{edit.Quota})
}

// Judged notes that the limits of spec.trial are judged.
func (r *Recorder) Judged(at time.Time, quota string, uid types.UID, trial corev1.ResourceList) {
	of := r.entry(quota, uid)
	if of == nil || len(trial) == 0 {
		return
	}
	digest := digestOf(trial)
	of.mu.Lock()
	_, known := of.record.trials[digest]
	of.record.judge(at.UnixMilli(), digest)
	of.mu.Unlock()
	if !known {
		r.version.Add(1)
	}
}

// Changes returns the edits of a quota that were stored, given the spec that it has now, those of the newest generation
// first.
func (r *Recorder) Changes(quota *quotav1.ClusterResourceQuota) []quotav1.SpecChange {
	of := r.entry(quota.Name, quota.UID)
	if of == nil {
		return nil
	}
	var edits []Edit
	r.each(quota.Name, quota.UID, func(known *record) { edits = append(edits, known.edits...) })
	edits = newestEdits(edits)
	of.mu.Lock()
	defer of.mu.Unlock()
	if of.stored == nil {
		of.stored = stored{}
	}
	of.stored.note(quota.Generation, SpecDigest(quota.Spec))
	return of.stored.confirmed(edits)
}

// Forget drops what is known of a quota that was deleted. One of the same name that was created since is another one.
func (r *Recorder) Forget(quota string, uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := key{quota, uid}
	if _, known := r.own[of]; known {
		delete(r.own, of)
		r.version.Add(1)
	}
}

// entry returns what this process noted of a quota, and makes it; nil if there is no room, or it has no name.
func (r *Recorder) entry(quota string, uid types.UID) *entry {
	wanted := key{quota, uid}
	r.mu.RLock()
	of, known := r.own[wanted]
	r.mu.RUnlock()
	if known {
		return of
	}
	if quota == "" || len(quota) > longestName || len(uid) > longestName {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lockedEntry(wanted)
}

func (r *Recorder) lockedEntry(wanted key) *entry {
	of, known := r.own[wanted]
	if !known && len(r.own) < mostQuotas {
		of = &entry{record: newRecord()}
		r.own[wanted] = of
	}
	return of
}

// each calls a function with what each part knows of a quota. It must not keep that.
func (r *Recorder) each(quota string, uid types.UID, do func(*record)) {
	wanted := key{quota, uid}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if of, known := r.own[wanted]; known {
		of.mu.Lock()
		do(of.record)
		of.mu.Unlock()
	}
	for _, part := range r.active {
		if of, known := part.records[wanted]; known {
			do(of)
		}
	}
}

// Version implements exchange.Content.
func (r *Recorder) Version() uint64 { return r.version.Load() }

// Pause implements exchange.Content.
func (r *Recorder) Pause(published uint64) time.Duration {
	if r.edited.Load() > published {
		return hurry
	}
	return pause
}

// Receive implements exchange.Content. A part of which something can't be read counts with the rest.
func (r *Recorder) Receive(replica string, encoded []byte) error {
	r.mu.RLock()
	before := r.parts[replica]
	r.mu.RUnlock()
	var read *part
	var err error
	if len(encoded) > 0 {
		if read, err = decode(encoded, before); read == nil {
			return err
		}
	}
	r.mu.Lock()
	r.parts[replica] = read
	if read == nil {
		delete(r.parts, replica)
	}
	r.lockedActivate()
	r.mu.Unlock()
	r.changed(differing(before, read))
	return err
}

// lockedActivate finds out which parts count: those that no part includes, each once. If another part includes the own one,
// because this process was taken for gone, the own one begins from scratch.
func (r *Recorder) lockedActivate() {
	included := maps.Clone(r.adopted)
	for _, part := range r.parts {
		maps.Copy(included, part.adopted)
	}
	if _, adopted := included[r.id]; adopted {
		r.ids++
		r.id = fmt.Sprintf("%s.%d", r.id, r.ids)
		r.own = map[key]*entry{}
		r.version.Add(1)
	}
	newest := map[string]*part{} // id -> part
	for _, part := range r.parts {
		if _, adopted := included[part.id]; !adopted && (newest[part.id] == nil || newest[part.id].version < part.version) {
			newest[part.id] = part
		}
	}
	r.active = slices.Collect(maps.Values(newest))
}

// Adopt implements exchange.Content. The own part says which parts it includes, so that each counts once, no matter
// whether its ConfigMap is there. If two leaders adopt a part, because one of them was suspended for minutes, its requests
// count twice.
func (r *Recorder) Adopt(replica string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	gone := r.parts[replica]
	delete(r.parts, replica)
	defer r.lockedActivate()
	if gone == nil || !slices.Contains(r.active, gone) {
		return
	}
	for _, of := range slices.SortedFunc(maps.Keys(gone.records), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.uid, b.uid))
	}) {
		if own := r.lockedEntry(of); own != nil {
			own.mu.Lock()
			own.record.add(gone.records[of])
			own.record.settle()
			own.mu.Unlock()
		}
	}
	r.adopted[gone.id] = gone.written
	for id, at := range gone.adopted {
		r.adopted[id] = max(at, r.adopted[id])
	}
	r.adopted = newestIDs(r.adopted)
	r.version.Add(1)
}

// Sweep implements exchange.Content. It drops what is too old or too much.
func (r *Recorder) Sweep(now time.Time) {
	r.mu.Lock()
	today := dayOf(now.UnixMilli())
	isNewDay := today != r.today
	r.today = today
	size := r.lockedPrune(today, Days)
	r.full.Store(size > mostEntries)
	for days := Days * 2 / 3; size > mostEntries && days > 0; days = days * 2 / 3 {
		size = r.lockedPrune(today, days)
	}
	var names []string
	if isNewDay {
		names = r.lockedNames()
	}
	r.mu.Unlock()
	if isNewDay {
		r.changed(names)
	}
}

// lockedPrune drops what is older than the last so many days, and quotas of which nobody has known for as long. It
// returns how much is left.
func (r *Recorder) lockedPrune(today int32, days int) (size int) {
	for of, own := range r.own {
		own.mu.Lock()
		own.record.prune(today, days)
		if dayOf(own.record.touched) < today-Days {
			delete(r.own, of)
		} else {
			size += own.record.size()
		}
		own.mu.Unlock()
	}
	return size
}

func (r *Recorder) lockedNames() []string {
	names := map[string]bool{}
	for of := range r.own {
		names[of.name] = true
	}
	for _, part := range r.active {
		for of := range part.records {
			names[of.name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
