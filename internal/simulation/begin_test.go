// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

// ways are those in which a replica is asked, without those of objects that replace others.
const ways = 4

// begin begins a request: a is its number, b its place, and c the replica that answers it, its amount, and whether its object
// replaces another one.
func (w *world) begin(s step) {
	r := &request{
		world: w, id: s.a, replica: w.replicas[s.c%len(w.replicas)], begun: w.now, revision: w.revision, place: placeOf(s.b),
		uid: w.newUID("o"),
	}
	way := s.c / len(w.replicas)
	size := 1 + way%ways/2
	r.rise = figures{widgets: 1}
	if r.source == claims {
		r.rise = figures{0, 1, size}
	}
	if before := w.objectAt(r.place); before != nil && r.source == claims && way%2 == 0 {
		r.uid, r.from, r.attempt = before.uid, before.revision, "a"+w.number(uint64(s.a))
		r.rise = figures{0, 0, size}
	}
	for q, quota := range w.quotas.newest {
		if quota != nil {
			r.limit[q], r.most[q], r.limitOf[q] = quota.limit(), quota.most(), quota.uid
		}
	}
	r.replaces = way >= ways && r.from == 0
	if s.action == beginRequest {
		r.asked = w.ask(r.namespace)
	}
	w.requests = append(w.requests, r)
	if r.asked.isNone() {
		r.status = admitted
		return
	}
	w.counts.asked++
	r.arrive()
}

func placeOf(n int) place {
	return place{source: n / (maxNamespaces * maxNames), namespace: n / maxNames % maxNamespaces, name: n % maxNames}
}

// answered takes the replica's yes.
func (r *request) answered() {
	r.stage = stageNone
	if r.status == asking && !r.left {
		r.status = admitted
	}
	r.left = true
}

// persist stores the admitted object, unless another write was first.
func (r *request) persist() {
	w := r.world
	before := w.objectAt(r.place)
	taken := r.from == 0 && before != nil || r.from != 0 && (before == nil || before.revision != r.from)
	if taken || w.namespaces.newest[r.namespace] == nil {
		r.status = failed
		return
	}
	size := r.rise
	if before != nil {
		size = size.plus(before.size)
	}
	added := part{amounts: r.rise, by: r, surges: r.replaces && r.facts.Replaces}
	for q := range maxQuotas {
		if !r.passed[q] && r.isAskedOf(q, r.limitOf[q]) && w.isMember(r.namespace, q, r.limitOf[q], r.revision) {
			added.asked[q] = r.limitOf[q]
		}
	}
	r.status = persisted
	w.putObject(r.place, r.uid, size, added)
	w.checkCommit(r)
}

// growUnasked makes a claim grow by its status, about which the operator is not asked.
func (w *world) growUnasked(at place) {
	before := w.objectAt(at)
	size, grown := before.size, figures{0, 0, 1}
	w.putObject(at, before.uid, size.plus(grown), part{amounts: grown})
}

// surgeOf returns one of the surges that quotas have.
func (w *world) surgeOf(n int) figures {
	if !w.shape.surges {
		return figures{}
	}
	n /= hards
	return figures{n % 3, n / 3 % 3, 2 * (n % 3)}
}

// hards and surges are how many limits and surges there are.
const hards, surges = 36, 9

// hardOf returns one of the limits that quotas have.
func (w *world) hardOf(n int) figures {
	spare := w.shape.spare
	return figures{1 + n%3 + spare, 1 + n/3%3 + spare, 2 + n/9%4 + 2*spare}
}
