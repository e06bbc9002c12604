// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// pending reports whether a watch has something to show.
func (r *replica) pending(kind kind) bool {
	if kind >= countNamespaces && r.counter == nil || kind == countWidgets && r.world.unserved {
		return false
	}
	stream := r.streams[kind]
	return !stream.listed || len(stream.rest) > 0 || stream.position < r.world.length(kind)
}

func (w *world) length(kind kind) int {
	switch kind {
	case watchLedgers:
		return len(w.ledgers.changes)
	case watchQuotas:
		return len(w.quotas.changes)
	case countWidgets:
		return len(w.objects[widgets].changes)
	case countClaims:
		return len(w.objects[claims].changes)
	default:
		return len(w.namespaces.changes)
	}
}

// deliver shows the replica the next event of a watch, or its first list.
func (r *replica) deliver(kind kind) {
	if !r.streams[kind].listed {
		r.relist(kind, r.world.length(kind))
		return
	}
	if rest := r.streams[kind].rest; len(rest) > 0 {
		r.streams[kind].rest = rest[1:]
		rest[0]()
		return
	}
	at := r.streams[kind].position
	r.streams[kind].position++
	w := r.world
	switch kind {
	case watchLedgers:
		change := w.ledgers.changes[at]
		r.showLedger(change.key, change.value)
	case watchNamespaces:
		change := w.namespaces.changes[at]
		r.showNamespace(change.key, change.value, change.revision)
	case watchQuotas:
		change := w.quotas.changes[at]
		r.showQuota(change.key, change.value, change.revision)
	case countNamespaces:
		r.counter.takeNamespace(w.namespaces.changes[at])
	default:
		r.deliverObject(int(kind-countWidgets), at)
	}
}

func (r *replica) deliverObject(source, at int) {
	history := &r.world.objects[source]
	change := history.changes[at]
	var before *object
	for earlier := at - 1; change.value == nil && before == nil; earlier-- {
		if history.changes[earlier].key == change.key {
			before = history.changes[earlier].value
		}
	}
	r.counter.takeObject(source, before, change)
}

// relist shows the replica a list as of a position.
func (r *replica) relist(kind kind, position int) {
	w := r.world
	r.streams[kind] = stream{listed: true, position: position}
	switch kind {
	case watchLedgers:
		list, _ := w.ledgers.listed(position)
		for q, listed := range list {
			if listed != r.ledgers[q] {
				r.showLedger(q, listed)
			}
		}
	case watchNamespaces:
		r.relistNamespaces(w.namespaces.listed(position))
	case watchQuotas:
		r.relistQuotas(w.quotas.listed(position))
	case countNamespaces:
		list, revision := w.namespaces.listed(position)
		r.counter.listNamespaces(list, max(revision, 1))
	default:
		source := int(kind - countWidgets)
		list, revision := w.objects[source].listed(position)
		r.counter.listObjects(source, list, max(revision, 1))
	}
}

// relistNamespaces takes a list at once.
func (r *replica) relistNamespaces(list []*namespace, revision uint64) {
	var objects []*metav1.PartialObjectMetadata
	for n, listed := range list {
		if listed != nil {
			objects = append(objects, listed.raw)
		}
		r.later(watchNamespaces, func() { r.showNamespace(n, listed, revision) })
	}
	switch m := r.world.mutation; {
	case m.listsChanges:
		for _, object := range objects {
			r.memory.Namespaces().Set(object)
		}
		r.memory.Namespaces().List(objects, max(revision, 1)) // the same versions again
	case !m.listsOneByOne:
		r.memory.Namespaces().List(objects, max(revision, 1))
	}
}

func (r *replica) relistQuotas(list []*quota, revision uint64) {
	var objects []*quotav1.ClusterResourceQuota
	for q, listed := range list {
		if listed != nil {
			objects = append(objects, listed.raw)
		}
		r.later(watchQuotas, func() {
			if listed != nil {
				r.memory.Quotas().Set(listed.raw)
			} else {
				r.memory.Quotas().Remove(r.world.vocabulary.quotas[q], revision)
			}
		})
		if listed != r.quotas[q] {
			r.cacheQuota(q, listed)
		}
	}
	if !r.world.mutation.listsOneByOne {
		r.memory.Quotas().List(objects, max(revision, 1))
	}
}

// later has a mutated watch show an object of a list later.
func (r *replica) later(kind kind, show func()) {
	if r.world.mutation.listsOneByOne {
		r.streams[kind].rest = append(r.streams[kind].rest, show)
	}
}

func (r *replica) showNamespace(n int, shown *namespace, revision uint64) {
	if shown == nil {
		r.memory.Namespaces().Remove(r.world.vocabulary.namespaces[n], revision)
		return
	}
	r.memory.Namespaces().Set(shown.raw)
}

// showLedger hands a ledger that a watch has shown to its machine.
func (r *replica) showLedger(q int, shown *stored) {
	r.ledgers[q] = shown
	if r.counter != nil {
		r.counter.due[q] = r.now()
	}
	if shown == nil {
		if driver := r.drivers[q]; driver != nil {
			driver.step(machine.Gone{})
		}
		if r.quotas[q] == nil {
			r.forget(q)
		}
		return
	}
	if known := r.current(q).Version; known.IsZero() || known.ResourceVersion < shown.snapshot.Version.ResourceVersion {
		r.driver(q).step(machine.Seen{Snapshot: shown.snapshot})
	}
}

func (r *replica) showQuota(q int, shown *quota, revision uint64) {
	if shown == nil {
		r.memory.Quotas().Remove(r.world.vocabulary.quotas[q], revision)
	} else {
		r.memory.Quotas().Set(shown.raw)
	}
	r.cacheQuota(q, shown)
}

// cacheQuota takes a quota into the leader's cache.
func (r *replica) cacheQuota(q int, shown *quota) {
	r.quotas[q] = shown
	if r.counter != nil {
		r.counter.due[q] = r.now()
	}
	if shown == nil && r.ledgers[q] == nil {
		r.forget(q)
	}
}
