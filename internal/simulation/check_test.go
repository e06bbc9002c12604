// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

const (
	// promptly is how long at most an undisturbed cluster refuses although there is room: a
	// charge's patience, and some paces until the leader has settled the objects that left.
	promptly = 400 * time.Millisecond
	// learns is how long an undisturbed leader may know of use that the ledger lacks: the
	// turn that it leaves to other replicas, and some paces.
	learns = 300 * time.Millisecond
)

// failure is the defect that a schedule has shown.
type failure struct{ message string }

func (w *world) failf(format string, arguments ...any) {
	if w.failure == nil {
		w.failure = &failure{message: fmt.Sprintf(format, arguments...)}
	}
}

// room is how much of a quota is free, and since when.
type room struct {
	live figures
	// limit is the room by the limits, and most that with surge.
	limit, most free
}

// free is an amount that is free.
type free struct {
	amount figures
	// short is when there last was less than so many free.
	short [maxFigures][5]time.Time
}

func (f *free) note(now time.Time) {
	for figure, free := range f.amount {
		for amount := max(free+1, 1); amount < len(f.short[figure]); amount++ {
			f.short[figure][amount] = now
		}
	}
}

// recount measures the room in all quotas after a change of the living objects.
func (w *world) recount() {
	for q := range maxQuotas {
		w.room[q].live = w.living(q)
		w.measureRoom(q)
	}
}

// living returns the amounts of the objects that live in the namespaces that a quota selects.
func (w *world) living(q int) figures {
	var live figures
	for source := range w.objects {
		for _, object := range w.objects[source].newest {
			if object != nil && w.selected[object.namespace][q] != 0 {
				live = live.plus(object.size)
			}
		}
	}
	return masked(q, live)
}

func (w *world) measureRoom(q int) {
	room := &w.room[q]
	limit, most := w.free(q)
	room.limit.note(w.now)
	room.limit.amount = limit
	room.limit.note(w.now)
	if w.shape.surges {
		room.most.note(w.now)
		room.most.amount = most
		room.most.note(w.now)
	}
}

// free is the room by the living objects, and by those to come: a reservation holds until its
// object lives, or it ends. It is the same with surge in most.
func (w *world) free(q int) (limit, most figures) {
	quota, ledger := w.quotas.newest[q], w.ledgers.newest[q]
	if quota == nil || ledger == nil {
		return figures{}, figures{}
	}
	limit, most = quota.limit(), quota.most()
	if fence := ledger.snapshot.State.Fence; fence.Generation > quota.generation {
		surge := w.amounts(fence.Surge)
		for figure, least := range w.amounts(fence.Hard) {
			limit[figure], most[figure] = min(limit[figure], least), min(most[figure], least+surge[figure])
		}
	}
	free := figures{}.minus(w.room[q].live)
	for key, escrow := range ledger.snapshot.State.Escrows {
		if !w.isHeld(key) { // or it is given back before anybody is refused
			free = free.minus(w.amounts(escrow.Amounts))
		}
	}
	for key, reservation := range ledger.snapshot.State.Reservations {
		if request := w.charged[key]; request == nil || request.status != persisted {
			free = free.minus(w.amounts(reservation.Amounts))
		}
	}
	for granted := range w.unrecorded {
		if request := w.charged[granted.key]; granted.quota == q && request.status != persisted {
			free = free.minus(masked(q, request.rise))
		}
	}
	return masked(q, limit.plus(free)), masked(q, most.plus(free))
}

// isHeld reports whether the holder of an escrow lives.
func (w *world) isHeld(escrow ledger.EscrowKey) bool {
	for _, replica := range w.replicas {
		for _, driver := range replica.drivers {
			if driver != nil && driver.replica.alive && driver.holder == escrow.Process {
				return true
			}
		}
	}
	return false
}

// checkEnds judges the fence or seal that ended by its age: a fence while its edit may still be stored, or a seal while a
// request may be that was granted by the ledger before.
func (w *world) checkEnds(before, written *stored) {
	was, is, q := before.snapshot.State, written.snapshot.State, written.quota
	for _, edit := range w.edits {
		if edit.stage == editAllowed && edit.imposed != nil && edit.quota == q && edit.generation == was.Fence.Generation &&
			is.Fence.Generation == 0 && is.Generation < edit.generation {
			w.failf("the fence of edit %d ended before the edit", edit.id)
		}
	}
	if open := is.Sealed.IsZero() && !was.Sealed.IsZero(); open && w.now.Sub(w.lost[q]) < requestTimeout {
		w.failf("a ledger was opened %v after another one had been lost", w.now.Sub(w.lost[q]))
	}
}

// lose notes that a ledger is lost, if it was ever open.
func (w *world) lose(lost *stored) {
	if quota := w.quotas.newest[lost.quota]; quota != nil && quota.ledger == lost.snapshot.Version.UID {
		w.lost[lost.quota] = w.now
	}
}

// reserved takes it that a ledger was written.
func (w *world) reserved(before, written *stored) {
	if before != nil {
		w.checkEnds(before, written)
	}
	for key, reservation := range written.snapshot.State.Reservations {
		if request := w.charged[key]; reservation.Doubtful && w.now.Sub(request.begun) < doubtAfter {
			w.failf("request %d was put in doubt before %s had passed", request.id, doubtAfter)
		}
		if before != nil {
			if held, ok := before.snapshot.State.Reservations[key]; ok && held.Expiry.Equal(reservation.Expiry) {
				continue
			}
		}
		if _, recorded := w.unrecorded[recording{written.quota, key}]; recorded {
			delete(w.unrecorded, recording{written.quota, key}) // it was granted on an earlier one
			continue
		}
		if request := w.charged[key]; request != nil {
			granting := *written // the use that it includes may become known later
			request.granted[written.quota] = &granting
		}
	}
	w.measureRoom(written.quota)
}

// isMember reports whether a namespace has been a quota's since a revision, and before.
func (w *world) isMember(n, q int, uid types.UID, since uint64) bool {
	current := w.quotas.newest[q]
	return current != nil && current.uid == uid && w.selected[n][q] != 0 && w.joined[n][q] <= since
}

// believed is how long a live read of a namespace serves for denials.
const believed = 5 * time.Second

// looksEvery is how long a look at a spec's version serves for denials.
const looksEvery = time.Second

// wasMember reports whether a namespace has been a quota's at this time, or later.
func (w *world) wasMember(n, q int, at time.Time) (member bool) {
	for _, change := range w.namespaces.changes {
		if change.key == n {
			member = change.value != nil && change.value.labels>>q&1 == 1 || member && change.at.After(at)
		}
	}
	return member
}

// checkCommit judges the commit of an admitted object: it must not take the living objects above
// the limit, but for use about which the operator was not asked and which the ledger that granted
// the object did not include.
func (w *world) checkCommit(r *request) {
	for q := range maxQuotas {
		if !r.isAskedOf(q, r.limitOf[q]) || !w.isMember(r.namespace, q, r.limitOf[q], r.revision) {
			continue
		}
		granting := r.granted[q]
		if granting == nil {
			granting = w.ledgers.newest[q]
		}
		for figure, rise := range masked(q, r.rise) {
			if rise == 0 {
				continue
			}
			unasked, later := w.unasked(q, figure, granting, r)
			live, most := w.room[q].live[figure], r.most[q][figure]
			if live-unasked > most {
				w.failf("request %d took %s of quota %s to %d, of which nobody was asked about %d; the limit is %d",
					r.id, w.figures[figure], w.vocabulary.quotas[q], live, unasked, most)
			}
			if !r.surges() && live-unasked-later > r.limit[q][figure] {
				w.failf("request %d, which replaces nothing, took %s of quota %s to %d, of which nobody was asked about %d, "+
					"and replacements took %d later; the limit is %d",
					r.id, w.figures[figure], w.vocabulary.quotas[q], live, unasked, later, r.limit[q][figure])
			}
			if w.shape.surges {
				w.checkLast(r, q, figure)
			}
			w.counts.commits++
			if unasked > 0 {
				w.counts.exempt++
			}
		}
	}
}

// checkLast judges by the request that was granted last, of those whose objects live and replace nothing, once another one
// is committed: all that was granted before is within the limit, whether it replaces something or not.
func (w *world) checkLast(r *request, q, figure int) {
	var last *request
	at := uint64(0)
	for _, object := range w.objects[figureSource(figure)].newest {
		if object == nil || w.selected[object.namespace][q] == 0 {
			continue
		}
		for _, part := range object.parts {
			counts := part.asked[q] == w.quotas.newest[q].uid && part.revision > w.joined[object.namespace][q] && part.amounts[figure] > 0
			if granted := part.grantedAt(q); counts && !part.surges && granted >= at && w.isMember(object.namespace, q, part.asked[q], part.by.revision) {
				last, at = part.by, granted
			}
		}
	}
	if r.surges() {
		w.counts.proved++
	}
	live := w.room[q].live[figure]
	if live > r.limit[q][figure] {
		w.counts.above++
	}
	if last == nil || last == r || last.granted[q] == nil {
		return
	}
	if unasked, later := w.unasked(q, figure, last.granted[q], last); live-unasked-later > last.limit[q][figure] {
		w.failf("request %d took %s of quota %s to %d, of which nobody was asked about %d, and replacements took %d after request %d, "+
			"which replaces nothing; its limit is %d",
			r.id, w.figures[figure], w.vocabulary.quotas[q], live, unasked, later, last.id, last.limit[q][figure])
	}
}

// unasked returns the living use under a quota for which the operator was not asked about it, and
// which a ledger did not include. Of the rest, later is the use of objects that replace others and were not granted before
// that ledger was written.
func (w *world) unasked(q, figure int, in *stored, by *request) (unasked, later int) {
	granted := uint64(0)
	if in != nil {
		granted = in.snapshot.Version.ResourceVersion
	}
	for _, object := range w.objects[figureSource(figure)].newest {
		if object == nil || w.selected[object.namespace][q] == 0 {
			continue
		}
		for _, part := range object.parts {
			asked := part.asked[q] == w.quotas.newest[q].uid && part.revision > w.joined[object.namespace][q]
			switch {
			case !asked && !w.includes(in, q, figure, by, object, part):
				unasked += part.amounts[figure]
			case part.surges && part.grantedAt(q) >= granted:
				later += part.amounts[figure]
			}
		}
	}
	return unasked, later
}

// includes reports whether a ledger includes a part of an object, or has to. A charge is
// judged only by a ledger that has counted the request's own namespace, and all that the replica has seen join;
// each with all that lived there then, unless the leader could not wait for that.
func (w *world) includes(in *stored, q, figure int, by *request, object *object, part part) bool {
	if in == nil || in.snapshot.State.Quota != w.quotas.newest[q].uid {
		return false
	}
	has := func(namespace int) func(reached) bool {
		return func(count reached) bool { return count.namespaces >= w.selected[namespace][q] }
	}
	own := by.namespace
	uncounted := object.namespace == own && !slices.ContainsFunc(in.included[figure], has(own))
	for _, reached := range in.included[figure] {
		if (uncounted || has(object.namespace)(reached)) && reached.sources[object.source] >= part.revision {
			return true
		}
	}
	joined := w.joined[object.namespace][q]
	counted := object.namespace == own && joined <= in.snapshot.State.Counted[ledger.Namespaces]
	return (counted || joined <= by.saw) && part.revision <= joined && w.waived[object.namespace][q] != joined
}

// checkCovered judges the quotas that a front end found for a namespace: specs at least as new as the
// question's epoch, and the namespace as it last changed before the revision up to which the front end says to
// have seen namespaces, or later.
func (w *world) checkCovered(r *request) {
	if m := w.mutation; m.noEpoch || m.noWitness || m.noLook {
		return
	}
	for i, covering := range r.covering {
		q, seen := slices.Index(w.vocabulary.quotas[:], covering.Limits.Name), r.knowledge[i].Seen
		for _, change := range w.quotas.changes {
			if is := change.value; change.revision <= r.asked.epoch && is != nil && is.uid == covering.Limits.Quota && is.generation > covering.Limits.Generation {
				w.failf("request %d of epoch %d is judged by generation %d of quota %s, not %d",
					r.id, r.asked.epoch, covering.Limits.Generation, covering.Limits.Name, is.generation)
			}
		}
		selected := false
		for _, change := range w.namespaces.changes {
			if change.key == r.namespace {
				selected = change.value != nil && change.value.labels>>q&1 == 1 || selected && change.revision > seen
			}
		}
		if !selected {
			w.failf("request %d is judged by quota %s, whose namespace had left before %d", r.id, covering.Limits.Name, seen)
		}
	}
}

// checkRefusal judges a refusal in an undisturbed cluster.
func (w *world) checkRefusal(r *request, decision ledger.Decision) {
	switch decision := decision.(type) {
	case ledger.Denied:
		w.counts.denied++
		q := slices.Index(w.vocabulary.quotas[:], decision.Quota)
		w.enforces(q)
		if w.enforced[q].Before(r.begun.Add(-looksEvery)) {
			w.failf("request %d was denied by quota %s, which only audits", r.id, decision.Quota)
		}
		if looked := r.charging.reply.looked; looked.Before(r.begun.Add(-looksEvery)) {
			w.failf("request %d was denied by a version of the spec of quota %s that was read %v before", r.id, decision.Quota, r.begun.Sub(looked))
		}
		if !w.wasMember(r.namespace, q, r.begun.Add(-believed)) {
			w.failf("request %d was denied by quota %s, which its namespace had left before", r.id, decision.Quota)
		}
		if !w.shape.calm {
			return
		}
		w.measureRoom(q)
		since, room := w.shape.disturbed, &w.room[q].limit
		if r.replaces {
			room = &w.room[q].most
		}
		for _, name := range decision.Resources() {
			figure := slices.Index(w.figures[:], name)
			if short := room.short[figure][r.rise[figure]]; short.After(since) {
				since = short
			}
		}
		w.counts.judged++
		if read := r.charging.reply.read; read.Sub(since) > promptly {
			w.failf("request %d was denied by quota %s for %v, of which there was enough since %v before: free %v",
				r.id, decision.Quota, decision.Resources(), read.Sub(since), room.amount)
		}
	default:
		w.counts.undecided++
		if w.shape.calm && w.namespaces.newest[r.namespace] != nil {
			w.failf("request %d was refused without a decision: %v", r.id, decision)
		}
	}
}

// checkLearning judges an undisturbed leader of which nothing is asked at the moment.
func (w *world) checkLearning() {
	if w.leader < 0 || !w.shape.calm {
		return
	}
	for _, driver := range w.replicas[w.leader].drivers {
		if driver == nil {
			continue
		}
		if !driver.isBehind() {
			driver.owes = time.Time{}
			continue
		}
		if driver.owes.IsZero() {
			driver.owes = w.now
		}
		if late := w.now.Sub(driver.owes); late > learns {
			w.failf("the leader has not settled quota %s for %v", w.vocabulary.quotas[driver.quota], late)
		}
	}
}

// tells is how long a leader may say at most that a quota is ready, although its ledger leaves every charge undecided.
const tells = 6 * time.Second

// checkReady judges the leader's conditions of its quotas, by its own knowledge.
func (w *world) checkReady() {
	if w.leader < 0 {
		return
	}
	for _, driver := range w.replicas[w.leader].drivers {
		if driver == nil || driver.call != nil || driver.isDue() {
			continue // it is about to learn more
		}
		known := driver.machine.Current()
		if !driver.saysReady(known.State) || driver.version != known.Version {
			driver.refuses, driver.version = w.now, known.Version
		}
		if late := w.now.Sub(driver.refuses); late > tells {
			w.failf("quota %s is said to be ready, and has left every charge undecided for %v", w.vocabulary.quotas[driver.quota], late)
		}
	}
}

// saysReady reports whether the condition Ready is true although no charge can be decided by the ledger.
func (d *driver) saysReady(known ledger.State) bool {
	r := d.replica
	spec, quotas := r.quotas[d.quota], r.world.vocabulary.quotas
	if spec == nil {
		return false
	}
	figures := counting.BalanceOf(r.counter.count, quotas[d.quota], spec.uid, known)
	if d.untaken || figures.Target.Generation != spec.generation || len(figures.Uncounted(known)) > 0 {
		return false
	}
	caller := ledger.Knowledge{}
	r.counter.count.Read(quotas[d.quota], func(view counting.View) { caller.Seen = view.Counted()[ledger.Namespaces] })
	_, undecided := ledger.Edit(known).Judge(ledger.Charge{Limits: r.world.define(r.world.object(spec)).Limits, Knowledge: caller}).(ledger.Undecided)
	return undecided
}

// isBehind reports whether the ledger lacks use that the leader has counted.
func (d *driver) isBehind() bool {
	stored := d.replica.world.ledgers.newest[d.quota]
	if stored == nil || d.call != nil || !stored.snapshot.State.Sealed.IsZero() {
		return false
	}
	kept := d.observed
	observation := d.replica.world.honestly(func() *ledger.Observation {
		return d.observe(machine.Observe{Ledger: stored.snapshot.State})
	})
	d.observed = kept
	if observation == nil || observation.Quota != stored.snapshot.State.Quota {
		return false
	}
	weight := stored.snapshot.State.Weigh(*observation)
	return !weight.Far && !weight.Waits
}

// honestly runs something without the mutation.
func (w *world) honestly(run func() *ledger.Observation) *ledger.Observation {
	mutation := w.mutation
	w.mutation = noMutation()
	defer func() { w.mutation = mutation }()
	return run()
}

// checkStill judges a cluster in which nothing is left to do.
func (w *world) checkStill() {
	for q, quota := range w.quotas.newest {
		ledger := w.ledgers.newest[q]
		if quota == nil {
			if ledger != nil {
				w.failf("the ledger of quota %s outlived it", w.vocabulary.quotas[q])
			}
			continue
		}
		if ledger == nil || ledger.snapshot.State.Quota != quota.uid || !ledger.snapshot.State.Sealed.IsZero() {
			w.failf("quota %s has no open ledger", w.vocabulary.quotas[q])
			return
		}
		state := ledger.snapshot.State
		if used := w.amounts(state.Used); used != w.room[q].live || len(state.Used) != len(w.hard(q, figures{})) {
			w.failf("quota %s: used is %v, and %v live", w.vocabulary.quotas[q], used, w.room[q].live)
		}
		if len(state.Reservations) > 0 {
			w.failf("quota %s: something is still reserved: %v", w.vocabulary.quotas[q], state.Reservations)
		}
		if within := w.room[q].live.max(masked(q, quota.hard)) == masked(q, quota.hard); within && len(state.Surgers) > 0 {
			w.failf("quota %s: workloads are named though nothing is above the limit: %v", w.vocabulary.quotas[q], state.Surgers)
		}
		if state.Fence.Generation != 0 {
			w.failf("quota %s: a fence still stands: %v", w.vocabulary.quotas[q], state.Fence)
		}
	}
}

// report takes the report of a machine.
func (w *world) report(d *driver, effect machine.Effect) {
	switch effect := effect.(type) {
	case machine.Untaken:
		d.untaken = !effect.Since.IsZero() && !w.mutation.silent
	case machine.Conflicted:
		w.counts.conflicts++
	case machine.Committed:
		w.counts.writes++
	case machine.Impossible:
		w.counts.impossible++
		goesOn := w.mutation.outlives && errors.Is(effect.Err, machine.ErrBackwards)
		if !strings.Contains(effect.Err.Error(), "another quota") && !goesOn {
			w.failf("replica %d, quota %s: %v", d.replica.id, w.vocabulary.quotas[d.quota], effect.Err)
		}
	}
}

// enforces notes that a quota refuses something now: by its mode, or by a fence. If an edit is refused after its fence was
// set, because another edit was first, the fence still binds replicas that have seen neither.
func (w *world) enforces(q int) {
	quota, ledger := w.quotas.newest[q], w.ledgers.newest[q]
	if quota != nil && (!quota.audits || ledger != nil && ledger.snapshot.State.Fence.Generation != 0) {
		w.enforced[q] = w.now
	}
}
