// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"
)

// withRestores in a seed: etcd is put back to backups.
const withRestores = 1 << 61

// outage is how long the API server is away at least while etcd is restored: longer than an escrow lives.
const outage = 3 * time.Second

// backup is the state of the API server at one time.
type backup struct {
	revision                 uint64
	objects                  [maxSources]history[object]
	namespaces               history[namespace]
	quotas                   history[quota]
	ledgers                  history[stored]
	selected, joined, waived [maxNamespaces][maxQuotas]uint64
	configurations           []configuration
	// persisted are the requests whose objects are in it.
	persisted map[*request]bool
}

// clone shares the entries, which never change.
func (h *history[T]) clone() history[T] {
	return history[T]{changes: slices.Clip(h.changes), newest: slices.Clone(h.newest)}
}

func (w *world) backUp() {
	b := &backup{
		revision: w.revision, namespaces: w.namespaces.clone(), quotas: w.quotas.clone(), ledgers: w.ledgers.clone(),
		selected: w.selected, joined: w.joined, waived: w.waived, configurations: slices.Clip(w.configurations),
		persisted: map[*request]bool{},
	}
	for source := range w.objects {
		b.objects[source] = w.objects[source].clone()
	}
	for _, request := range w.charged {
		b.persisted[request] = request.status == persisted
	}
	// The use that a ledger includes may become known later, by the history that is lost.
	b.ledgers.changes = slices.Clone(b.ledgers.changes)
	for at, change := range b.ledgers.changes {
		if change.value != nil && b.ledgers.newest[change.key] == change.value {
			kept := *change.value
			b.ledgers.changes[at].value, b.ledgers.newest[change.key] = &kept, &kept
		}
	}
	w.backup = b
}

// restore puts etcd back to the backup. Requests end with the API server. A process that remembers more than the backup
// has does nothing any more, because it asks first whether the API server remembers the same, and then ends. If a write of
// a ledger slips through all the same, because its resourceVersion is given again, its checksum is of another generation.
func (w *world) restore(slips bool) {
	b, lost := w.backup, w.ledgers.newest
	w.backup = nil
	for _, request := range w.requests {
		request.fail("the API server stopped")
		request.stage = stageNone
	}
	for _, edit := range w.edits {
		edit.stage = editOver
	}
	clear(w.unrecorded)
	w.pass(outage)
	w.revision, w.objects, w.namespaces, w.quotas, w.ledgers = b.revision, b.objects, b.namespaces, b.quotas, b.ledgers
	w.selected, w.joined, w.waived, w.configurations = b.selected, b.joined, b.waived, b.configurations
	w.knownNamespaces, w.loaded = len(w.namespaces.changes), len(w.configurations)-1
	for _, request := range w.charged {
		if request.status == persisted && !b.persisted[request] {
			request.status = failed
		}
	}
	w.room = [maxQuotas]room{}
	w.recount()
	for q := range maxQuotas {
		w.enforced[q] = w.now
	}
	for _, replica := range w.replicas {
		if replica.alive && w.mutation.outlives {
			replica.outlive()
		} else if replica.alive {
			replica.crash()
		}
	}
	w.orphans = nil
	for q, restored := range w.ledgers.newest {
		if slips && restored != nil && lost[q] != nil {
			w.editLedger(q)
			if written := w.ledgers.newest[q]; w.mutation.trustsLost {
				written.snapshot.Edited, written.snapshot.State = false, lost[q].snapshot.State
			}
		}
	}
}

// outlive lets a replica go on with its memory. Its watches go on where they were.
func (r *replica) outlive() {
	for kind := range kinds {
		r.streams[kind].position = min(r.streams[kind].position, r.world.length(kind))
	}
	for _, driver := range r.all() {
		if driver.call != nil {
			driver.deliver(driver.call.lost())
		}
	}
}
