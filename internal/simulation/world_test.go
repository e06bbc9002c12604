// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

const (
	// life of a reservation, and of a fence: longer than a request and an escrow.
	life = 64 * time.Second
	// webhookTimeout is how long the API server waits for an answer.
	webhookTimeout = 10 * time.Second
	// requestTimeout is when it has certainly given up on a request.
	requestTimeout = 60 * time.Second
	// doubtAfter is as the operator's.
	doubtAfter = 3 * time.Second
	// mostWrong is by how much a clock is wrong at most.
	mostWrong = time.Hour
)

var errLost = errors.New("the reply was lost")

// world is the API server, the replicas, the clients and the clock.
type world struct {
	*vocabulary
	shape    shape
	mutation mutation
	now      time.Time
	revision uint64
	uids     uint64

	objects    [maxSources]history[object]
	namespaces history[namespace]
	quotas     history[quota]
	ledgers    history[stored]
	// selected is since which of its versions a namespace has been a quota's; zero for
	// never. It is joined since when both have been there.
	selected, joined [maxNamespaces][maxQuotas]uint64
	// waived are the joins that a leader took as they were, without proof.
	waived [maxNamespaces][maxQuotas]uint64

	// configurations are all that were written; loaded is the one in use, and knownNamespaces are
	// as the webhooks' selectors see them.
	configurations  []configuration
	loaded          int
	knownNamespaces int
	// unserved is of widgets, whose lists fail and watches stand still meanwhile.
	unserved bool

	replicas []*replica
	// backup is the state to which etcd may be put back; nil for none.
	backup *backup

	// leader is the replica that has the lease; -1 for none.
	leader   int
	requests []*request
	edits    []*edit
	// orphans are writes whose reply is not awaited any more.
	orphans []*call
	// charged are the requests that have a reservation.
	charged map[ledger.Key]*request
	// unrecorded has the charges that were granted from escrow and are in no ledger, and the
	// drivers that granted them.
	unrecorded map[recording]*driver

	room [maxQuotas]room
	// lost is when each quota lost a ledger last.
	lost [maxQuotas]time.Time
	// enforced is when a quota, or a fence of it, last refused something.
	enforced [maxQuotas]time.Time
	// remembers: the past is remembered, and written stands for all writes in it.
	remembers bool
	written   uint64
	// stepping is the step under way.
	stepping uint64
	failure  *failure
	counts   counts
	trace    *trace
}

// recording is a charge of one quota.
type recording struct {
	quota int
	key   ledger.Key
}

// configuration is a version of the webhook configuration: the quotas that it asks about. In a
// version that is deleted, there is no configuration.
type configuration struct {
	version uint64
	deleted bool
	// quotas are the quotas from which the entries were generated.
	quotas [maxQuotas]*entry
}

// entry is a quota as the webhook configuration knows it.
type entry struct {
	uid        types.UID
	generation int64
	// version is the resourceVersion of this generation.
	version uint64
}

// question is the part of an entry that the API server repeats.
type question struct {
	// quotas are the UIDs of the quotas that cover the entry's namespaces.
	quotas [maxQuotas]types.UID
	epoch  uint64
}

func (q question) isNone() bool { return q == question{} }

// set is the webhookconfig.QuotaSet of the quotas.
func (q question) set() string {
	return webhookconfig.QuotaSet(slices.DeleteFunc(q.quotas[:], func(uid types.UID) bool { return uid == "" }))
}

func newWorld(words *vocabulary, shape shape, mutation mutation) *world {
	w := &world{
		vocabulary: words, shape: shape, mutation: mutation, now: words.start, leader: -1, revision: 1,
		namespaces: newHistory[namespace](maxNamespaces), quotas: newHistory[quota](maxQuotas),
		ledgers: newHistory[stored](maxQuotas), charged: map[ledger.Key]*request{}, unrecorded: map[recording]*driver{},
		configurations: []configuration{{version: 1}},
	}
	for source := range w.objects {
		w.objects[source] = newHistory[object](maxNamespaces * maxNames)
	}
	for n := range shape.replicas {
		w.replicas = append(w.replicas, newReplica(w, n, shape.offsets[n]))
	}
	return w
}

func (w *world) next() uint64 {
	w.revision++
	if w.remembers {
		w.written = (w.written ^ w.stepping) * 0x9e3779b97f4a7c15
	}
	return w.revision
}

func (w *world) newUID(prefix string) types.UID {
	w.uids++
	return types.UID(prefix + w.number(w.uids))
}

func (p place) key() int { return p.namespace*maxNames + p.name }

func (w *world) objectAt(at place) *object { return w.objects[at.source].newest[at.key()] }

// setNamespace creates or labels a namespace.
func (w *world) setNamespace(n, labels int) {
	revision := w.next()
	raw := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: w.vocabulary.namespaces[n], ResourceVersion: w.number(revision), Labels: w.labels[labels],
	}}
	w.namespaces.store(n, revision, w.now, &namespace{namespace: n, labels: labels, revision: revision, raw: raw})
	w.choose(n, labels, revision)
	w.recount()
}

// deleteNamespace deletes the objects of a namespace, and then the namespace.
func (w *world) deleteNamespace(n int) {
	for source := range w.objects {
		for name := range maxNames {
			if at := (place{source, n, name}); w.objectAt(at) != nil {
				w.deleteObject(at)
			}
		}
	}
	w.namespaces.store(n, w.next(), w.now, nil)
	w.choose(n, 0, w.revision)
	w.recount()
}

func (w *world) choose(n, labels int, revision uint64) {
	for q := range maxQuotas {
		switch {
		case labels>>q&1 == 0:
			w.selected[n][q], w.joined[n][q] = 0, 0
		case w.selected[n][q] == 0:
			w.selected[n][q], w.joined[n][q] = revision, revision
		}
	}
}

func (w *world) createQuota(q int, hard, surge figures, audits bool) {
	revision := w.next()
	created := &quota{quota: q, uid: w.newUID("q"), generation: 1, revision: revision, hard: hard, list: w.hard(q, hard), audits: audits}
	created.surge, created.extra = surge, w.extra(q, surge)
	created.raw = w.object(created)
	w.quotas.store(q, revision, w.now, created)
	w.enforces(q)
	for n := range maxNamespaces {
		if w.selected[n][q] != 0 {
			w.joined[n][q] = revision
		}
	}
	w.room[q], w.lost[q] = room{}, time.Time{}
	w.recount()
}

func (w *world) deleteQuota(q int) {
	w.enforces(q)
	w.quotas.store(q, w.next(), w.now, nil)
	w.recount()
}

// putQuota stores another version of a quota.
func (w *world) putQuota(next quota) {
	next.revision = w.next()
	if before := w.quotas.newest[next.quota]; before.generation != next.generation {
		next.list, next.extra = w.hard(next.quota, next.hard), w.extra(next.quota, next.surge)
		for _, request := range w.requests {
			if request.isOpen() && request.limitOf[next.quota] == next.uid {
				request.limit[next.quota] = request.limit[next.quota].max(next.limit())
				request.most[next.quota] = request.most[next.quota].max(next.most())
			}
		}
	}
	next.raw = w.object(&next)
	w.enforces(next.quota)
	w.quotas.store(next.quota, next.revision, w.now, &next)
	w.enforces(next.quota)
	w.recount()
}

// putObject stores an object that a request created or changed.
func (w *world) putObject(at place, uid types.UID, size figures, added part) *object {
	next := &object{place: at, uid: uid, revision: w.next(), size: size}
	if before := w.objectAt(at); before != nil {
		next.parts = append(next.parts, before.parts...)
	}
	added.revision = next.revision
	next.parts = append(next.parts, added)
	next.raw = w.raw(next)
	w.objects[at.source].store(at.key(), next.revision, w.now, next)
	w.recount()
	return next
}

func (w *world) deleteObject(at place) {
	w.objects[at.source].store(at.key(), w.next(), w.now, nil)
	w.recount()
}

// raw returns the object as Kubernetes has it.
func (w *world) raw(o *object) runtime.Object {
	meta := metav1.ObjectMeta{
		Namespace: w.vocabulary.namespaces[o.namespace], Name: w.names[o.name], UID: o.uid, ResourceVersion: w.number(o.revision),
	}
	if o.source == widgets {
		return &metav1.PartialObjectMetadata{ObjectMeta: meta}
	}
	return &corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{
		Resources: corev1.VolumeResourceRequirements{Requests: w.storage(o.size[2])},
	}}
}

// storage is the amount that a claim requests.
func (w *world) storage(amount int) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: w.list(figures{2: amount})[w.figures[2]]}
}

// swap stores a ledger in place of the one at version previous.
func (w *world) swap(q int, previous machine.Version, next ledger.State, force bool) (machine.Version, error) {
	current := w.ledgers.newest[q]
	switch {
	case current == nil && !previous.IsZero(), current != nil && current.snapshot.Version != previous && !force:
		return machine.Version{}, machine.ErrConflict
	}
	version := machine.Version{ResourceVersion: w.next(), Generation: 1}
	written := &stored{quota: q}
	if current == nil {
		version.UID = w.newUID("l")
	} else {
		version.Generation, version.UID = current.snapshot.Version.Generation+1, current.snapshot.Version.UID
		written.included = current.included
	}
	written.snapshot = machine.Snapshot{Version: version, State: next}
	w.enforces(q)
	w.ledgers.store(q, version.ResourceVersion, w.now, written)
	w.enforces(q)
	w.reserved(current, written)
	return version, nil
}

// deleteLedger deletes a ledger at a version; at any, if that is zero.
func (w *world) deleteLedger(q int, version machine.Version) bool {
	current := w.ledgers.newest[q]
	if current == nil || !version.IsZero() && current.snapshot.Version != version {
		return false
	}
	w.lose(current)
	w.ledgers.store(q, w.next(), w.now, nil)
	w.measureRoom(q)
	return true
}

// editLedger lets a client other than the operator write a ledger.
func (w *world) editLedger(q int) {
	w.lose(w.ledgers.newest[q])
	version := w.ledgers.newest[q].snapshot.Version
	version.ResourceVersion, version.Generation = w.next(), version.Generation+1
	w.ledgers.store(q, version.ResourceVersion, w.now, &stored{quota: q, snapshot: machine.Snapshot{Version: version, Edited: true}})
	w.measureRoom(q)
}

// writeConfiguration stores the webhook configuration in place of a version.
func (w *world) writeConfiguration(previous uint64, next configuration) bool {
	if w.newestConfiguration().version != previous {
		return false
	}
	next.version = w.next()
	w.configurations = append(w.configurations, next)
	return true
}

func (w *world) newestConfiguration() configuration { return w.configurations[len(w.configurations)-1] }

// ask returns the API server's question about a request in a namespace; an empty one if the request meets no entry.
func (w *world) ask(n int) question {
	known := w.namespaces.newest[n]
	for _, change := range w.namespaces.changes[:w.knownNamespaces] {
		if change.key == n && change.value != nil {
			known = change.value // an unknown namespace is read
		}
	}
	var asked question
	for q, entry := range w.configurations[w.loaded].quotas {
		if entry != nil && known != nil && known.labels>>q&1 == 1 {
			asked.quotas[q], asked.epoch = entry.uid, max(asked.epoch, entry.version)
		}
	}
	return asked
}
