// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package coverage

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/reach"
	"github.com/sharedquota/shared-quota-operator/internal/resourceversion"
)

// quotas are all ClusterResourceQuotas in the newest version that a watch or a
// live read has shown. A watch may be behind a live read: what it shows later is
// compared by resourceVersion and never replaces something newer.
type quotas struct {
	// seen is the resourceVersion up to which all quotas are known. It is raised only after byName has them.
	seen atomic.Uint64
	// edition grows with each change of what the quotas select or limit.
	edition atomic.Uint64

	// mu guards what follows, and each change of what precedes.
	mu sync.RWMutex
	// quota name -> quota
	byName map[string]quota
	// listed is the resourceVersion of the newest list that was merged. Whatever
	// a watch shows of an earlier time, that list knew already.
	listed uint64
	// growth is closed when seen grows. It is nil while nobody waits for that.
	growth chan struct{}
}

// quota is what is known of one quota.
type quota struct {
	version    uint64
	definition definition.Definition
	// deleted: it has a deletion timestamp, and limits nothing any more.
	deleted bool
}

func newQuotas() *quotas { return &quotas{byName: map[string]quota{}} }

// show takes what a watch shows.
func (q *quotas) show(object *quotav1.ClusterResourceQuota) {
	version := resourceversion.Parse(object.ResourceVersion)
	q.mu.Lock()
	defer q.mu.Unlock()
	if version >= q.listed {
		q.lockedPut(object)
	}
	q.lockedSee(version)
}

// hide takes the deletion that a watch shows: of the quota's last version that the
// watch knows, or of the version that the deletion is.
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

// touch takes the metadata of a quota that was read live and is current.
func (q *quotas) touch(item *metav1.PartialObjectMetadata) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lockedTouch(item)
}

// remove takes it that a live read didn't find the quota, which was known in this
// version when the read began.
func (q *quotas) remove(name string, version uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lockedRemove(name, version)
}

// merge takes a live list of the metadata of all quotas, and those quotas that
// were read whole because isCurrent said no.
func (q *quotas) merge(list *metav1.PartialObjectMetadataList, whole map[string]*quotav1.ClusterResourceQuota) {
	version := resourceversion.Parse(list.ResourceVersion)
	q.mu.Lock()
	defer q.mu.Unlock()
	exist := make(map[string]bool, len(list.Items))
	for i := range list.Items {
		item := &list.Items[i]
		exist[item.Name] = true
		if object, wasRead := whole[item.Name]; wasRead && object != nil {
			q.lockedPut(object)
		} else if wasRead {
			q.lockedRemove(item.Name, resourceversion.Parse(item.ResourceVersion))
		} else {
			q.lockedTouch(item)
		}
	}
	for name := range q.byName {
		if !exist[name] {
			q.lockedRemove(name, version)
		}
	}
	q.listed = max(q.listed, version)
	q.lockedSee(version)
}

// define returns a quota's definition. One of the spec that is known isn't compiled again.
func (q *quotas) define(object *quotav1.ClusterResourceQuota) definition.Definition {
	q.mu.RLock()
	known, ok := q.byName[object.Name]
	q.mu.RUnlock()
	if ok && known.isOf(object.UID, object.Generation) {
		return known.definition
	}
	return definition.Salvage(object)
}

// isCurrent reports whether this version of a quota's spec is the one that is known.
func (q *quotas) isCurrent(version *metav1.PartialObjectMetadata) bool {
	q.mu.RLock()
	defer q.mu.RUnlock()
	known, ok := q.byName[version.Name]
	return ok && known.isOf(version.UID, version.Generation)
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
	next := quota{version: resourceversion.Parse(object.ResourceVersion), deleted: !object.DeletionTimestamp.IsZero()}
	known, ok := q.byName[object.Name]
	if ok && next.version < known.version {
		return
	}
	if ok && known.isOf(object.UID, object.Generation) {
		next.definition = known.definition
	} else {
		next.definition = definition.Salvage(object)
		ok = false
	}
	q.byName[object.Name] = next
	if !ok || next.deleted != known.deleted {
		q.edition.Add(1)
	}
}

// lockedTouch takes a newer version of a quota whose spec is known.
func (q *quotas) lockedTouch(item *metav1.PartialObjectMetadata) {
	version, deleted := resourceversion.Parse(item.ResourceVersion), !item.DeletionTimestamp.IsZero()
	known, ok := q.byName[item.Name]
	if !ok || version <= known.version {
		return
	}
	if deleted != known.deleted {
		q.edition.Add(1)
	}
	known.version, known.deleted = version, deleted
	q.byName[item.Name] = known
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
	// definitions are sorted by name. Nobody changes them.
	definitions []definition.Definition
	// set is their reach.QuotaSet.
	set string
}

// covering returns the quotas that select a namespace.
func (q *quotas) covering(labels, annotations map[string]string) *covering {
	q.mu.RLock()
	defer q.mu.RUnlock()
	found := &covering{edition: q.edition.Load()}
	for _, known := range q.byName {
		if !known.deleted && known.definition.Selector.Matches(labels, annotations) {
			found.definitions = append(found.definitions, known.definition)
		}
	}
	slices.SortFunc(found.definitions, func(a, b definition.Definition) int { return cmp.Compare(a.Limits.Name, b.Limits.Name) })
	uids := make([]types.UID, 0, len(found.definitions))
	for i := range found.definitions {
		uids = append(uids, found.definitions[i].Limits.Quota)
	}
	found.set = reach.QuotaSet(uids)
	return found
}

// agrees reports whether these are the quotas that the question's entry was
// generated for. An entry that says nothing of them agrees if there is any.
func (c *covering) agrees(question reach.Question) bool {
	if question.Witness == reach.WitnessExact {
		return c.set == question.Quotas
	}
	return len(c.definitions) > 0
}
