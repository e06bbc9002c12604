// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// quotas are all ClusterResourceQuotas in the newest version that a watch or a
// live read has shown. A watch may be behind a live read: a version that it shows
// later is compared by resourceVersion and never replaces a newer one.
type quotas struct {
	// seen is the resourceVersion up to which all quotas are known. It is raised only after byName has them.
	seen atomic.Uint64
	// edition grows with each change of a quota's selector or limits.
	edition atomic.Uint64
	// synced: a watch has shown them all.
	synced atomic.Bool
	define func(*quotav1.ClusterResourceQuota) definition.Definition
	// newest returns the newest version of a namespace that a selector selects.
	newest func(definition.Selector) uint64

	// mu guards the fields below, and each change of the fields above.
	mu *sync.RWMutex
	// quota name -> quota
	byName map[string]quota
	// listed is the resourceVersion of the newest list that was merged. That list
	// included everything that a watch shows of an earlier time.
	listed uint64
	// growth is closed when seen grows. It is nil while no request waits for
	// that.
	growth chan struct{}
}

// quota is the memory of one quota.
type quota struct {
	version    uint64
	definition definition.Definition
	// joined is the newest version at which a namespace joined, or may have joined unseen.
	joined *atomic.Uint64
	// deleted: it has a deletion timestamp, and limits nothing any more.
	deleted bool
}

// show takes a quota from a watch.
func (q *quotas) show(object *quotav1.ClusterResourceQuota) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lockedShow(object)
	q.lockedSee(ledger.ParseVersion(object.ResourceVersion))
}

// replace takes a list that a watch begins with. All is known up to its version only once all of it is taken.
func (q *quotas) replace(list []*quotav1.ClusterResourceQuota, version uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	exist := make(map[string]bool, len(list))
	for _, object := range list {
		q.lockedShow(object)
		exist[object.Name] = true
	}
	q.lockedList(exist, version)
	q.synced.Store(true)
}

// see takes it that a watch has shown everything up to a version.
func (q *quotas) see(version uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lockedSee(version)
}

// hide takes the deletion that a watch shows.
func (q *quotas) hide(name string, version uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lockedRemove(name, version)
	q.lockedSee(version)
}

// put takes a quota that was read live.
func (q *quotas) put(object *quotav1.ClusterResourceQuota) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lockedPut(object)
}

// touch takes the metadata of a quota that was read live. It reports whether they are of the spec that is known.
func (q *quotas) touch(item *metav1.PartialObjectMetadata) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lockedTouch(item)
}

// remove takes it that a live read didn't find the quota, which was known in this
// version when the read began.
func (q *quotas) remove(name string, version uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lockedRemove(name, version)
}

// list takes which quotas a live list had. The quotas in it are known already.
func (q *quotas) list(exist map[string]bool, version uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lockedList(exist, version)
	q.listed = max(q.listed, version)
}

// compiled returns a quota's definition. One of the spec that is known isn't compiled again.
func (q *quotas) compiled(object *quotav1.ClusterResourceQuota) definition.Definition {
	q.mu.RLock()
	known, ok := q.byName[object.Name]
	q.mu.RUnlock()
	if ok && known.isOf(object.UID, object.Generation) {
		return known.definition
	}
	return q.define(object)
}

// version returns the version in which a quota is known; zero for none.
func (q *quotas) version(name string) uint64 {
	q.mu.RLock()
	defer q.mu.RUnlock()
	return q.byName[name].version
}

// grown returns a channel that is closed when seen has grown.
func (q *quotas) grown() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.growth == nil {
		q.growth = make(chan struct{})
	}
	return q.growth
}

// lockedPut compiles a quota only if its spec has changed: a quota's status
// changes every second.
func (q *quotas) lockedPut(object *quotav1.ClusterResourceQuota) {
	version := ledger.ParseVersion(object.ResourceVersion)
	if q.lockedTouch(object) || version < q.byName[object.Name].version {
		return
	}
	before := q.byName[object.Name]
	defined := quota{version: version, definition: q.define(object), deleted: !object.DeletionTimestamp.IsZero()}
	if defined.joined = before.joined; before.definition.Limits.Digest != defined.definition.Limits.Digest || before.joined == nil {
		defined.joined = &atomic.Uint64{}
		defined.joined.Store(q.newest(defined.definition.Selector)) // any of them may have joined unseen
	}
	q.byName[object.Name] = defined
	q.edition.Add(1)
}

// lockedJoin notes the quotas that a namespace joins. before is the namespace as it was; nil if that is unknown.
func (q *quotas) lockedJoin(before, next *namespace) {
	labelled := before != nil && maps.Equal(before.labels, next.labels)
	if labelled && maps.Equal(before.annotations, next.annotations) {
		return
	}
	for _, known := range q.byName {
		selector := known.definition.Selector
		if labelled && !selector.HasAnnotations() || !selector.Matches(next.labels, next.annotations) {
			continue
		}
		if before == nil || !selector.Matches(before.labels, before.annotations) {
			known.joined.Store(max(known.joined.Load(), next.version))
		}
	}
}

// lockedTouch takes a version of a quota whose spec is known. It reports whether the spec is.
func (q *quotas) lockedTouch(object metav1.Object) bool {
	known, ok := q.byName[object.GetName()]
	if !ok || !known.isOf(object.GetUID(), object.GetGeneration()) {
		return false
	}
	if version := ledger.ParseVersion(object.GetResourceVersion()); version > known.version {
		deleted := !object.GetDeletionTimestamp().IsZero()
		if deleted != known.deleted {
			q.edition.Add(1)
		}
		known.version, known.deleted = version, deleted
		q.byName[object.GetName()] = known
	}
	return true
}

// lockedShow takes a quota from a watch, unless a live list knew it already.
func (q *quotas) lockedShow(object *quotav1.ClusterResourceQuota) {
	if ledger.ParseVersion(object.ResourceVersion) >= q.listed {
		q.lockedPut(object)
	}
}

// lockedList removes the quotas that a list doesn't have.
func (q *quotas) lockedList(exist map[string]bool, version uint64) {
	for name := range q.byName {
		if !exist[name] {
			q.lockedRemove(name, version)
		}
	}
	q.lockedSee(version)
}

// lockedRemove removes a quota unless a later version than this one is known.
func (q *quotas) lockedRemove(name string, version uint64) {
	if known, ok := q.byName[name]; ok && known.version <= version {
		delete(q.byName, name)
		q.edition.Add(1)
	}
}

func (q *quotas) lockedSee(version uint64) {
	if version <= q.seen.Load() {
		return
	}
	q.seen.Store(version)
	if q.growth != nil {
		close(q.growth)
		q.growth = nil
	}
}

// isOf reports whether the quota is this version of the spec.
func (q quota) isOf(uid types.UID, generation int64) bool {
	return q.definition.Limits.Quota == uid && q.definition.Limits.Generation == generation
}

// covering are the quotas that cover a namespace, as of one edition.
type covering struct {
	edition uint64
	// definitions are sorted by name. They are never changed.
	definitions []definition.Definition
	// joined are those of the definitions.
	joined []*atomic.Uint64
	// set is their webhookconfig.QuotaSet.
	set string
}

// covering returns the quotas that select a namespace.
func (q *quotas) covering(labels, annotations map[string]string) *covering {
	q.mu.RLock()
	defer q.mu.RUnlock()
	found := &covering{edition: q.edition.Load()}
	var selecting []quota
	for _, known := range q.byName {
		if !known.deleted && known.definition.Selector.Matches(labels, annotations) {
			selecting = append(selecting, known)
		}
	}
	slices.SortFunc(selecting, func(a, b quota) int { return cmp.Compare(a.definition.Limits.Name, b.definition.Limits.Name) })
	uids := make([]types.UID, 0, len(selecting))
	for i := range selecting {
		found.definitions = append(found.definitions, selecting[i].definition)
		found.joined = append(found.joined, selecting[i].joined)
		uids = append(uids, selecting[i].definition.Limits.Quota)
	}
	found.set = webhookconfig.QuotaSet(uids)
	return found
}

// agrees reports whether these are the quotas that the question's entry was
// generated for. An entry that says nothing of them agrees if there is any.
func (c *covering) agrees(question webhookconfig.Question) bool {
	if question.Witness == webhookconfig.WitnessExact {
		return c.set == question.Quotas
	}
	return len(c.definitions) > 0
}
