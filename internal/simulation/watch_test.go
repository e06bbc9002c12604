// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import "github.com/sharedquota/shared-quota-operator/internal/machine"

// pending reports whether a watch has something to show.
func (r *replica) pending(kind kind) bool {
	if kind >= countNamespaces && r.counter == nil || kind == countWidgets && r.world.unserved {
		return false
	}
	stream := r.streams[kind]
	return !stream.listed || stream.position < r.world.length(kind)
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
	at := r.streams[kind].position
	r.streams[kind].position++
	w := r.world
	switch kind {
	case watchLedgers:
		change := w.ledgers.changes[at]
		r.showLedger(change.key, change.value)
	case watchNamespaces:
		change := w.namespaces.changes[at]
		r.coverage.showNamespace(change.key, change.value, change.revision)
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
		list, revision := w.namespaces.listed(position)
		r.relistNamespaces(list, revision)
	case watchQuotas:
		list, _ := w.quotas.listed(position)
		for q, listed := range list {
			if before := r.quotas[q]; listed != nil && listed != before {
				r.showQuota(q, listed, listed.revision)
			} else if listed == nil && before != nil {
				r.showQuota(q, nil, before.revision)
			}
		}
	case countNamespaces:
		list, revision := w.namespaces.listed(position)
		r.counter.listNamespaces(list, max(revision, 1))
	default:
		source := int(kind - countWidgets)
		list, revision := w.objects[source].listed(position)
		r.counter.listObjects(source, list, max(revision, 1))
	}
}

// relistNamespaces shows only what differs, as an informer does. Of what is gone it shows
// the last version that it knew.
func (r *replica) relistNamespaces(list []*namespace, _ uint64) {
	for n, listed := range list {
		known := r.coverage.shown[n]
		switch {
		case listed != nil:
			r.coverage.showNamespace(n, listed, listed.revision)
		case known != nil:
			r.coverage.showNamespace(n, nil, known.revision)
		}
	}
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
	r.quotas[q] = shown
	r.coverage.showQuota(q, shown, revision)
	if r.counter != nil {
		r.counter.due[q] = r.now()
	}
	if shown == nil && r.ledgers[q] == nil {
		r.forget(q)
	}
}
