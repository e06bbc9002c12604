// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"

	"github.com/sharedquota/shared-quota-operator/internal/admission"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// mutation is a defect that is put into the operator.
type mutation struct {
	// noEpoch, noWitness and noLook: the front end trusts its caches.
	noEpoch, noWitness, noLook bool
	// trustsLooks: a live look that explained why entry and cache disagree is believed for
	// some seconds.
	trustsLooks bool
	// listsOneByOne: a watch shows the objects of a list one after the other.
	listsOneByOne bool
	// noKnowledge: a charge is judged regardless of the knowledge of namespaces.
	noKnowledge bool
	// joinsAlone: a front end heeds only that the request's own namespace joined. boasts: it says to have seen all
	// that joined. listsChanges: it takes a list for the changes since.
	joinsAlone, boasts, listsChanges bool
	// noTouch: changes since an equal count are not told, of sources or of all.
	noTouch, noTouchAtAll bool
	// lazy: a settle that raises the use waits so long.
	lazy time.Duration
	// noFence: a lowered limit binds only replicas that know it.
	noFence bool
	// takesOld: a count is taken though it is older than the ledger's.
	takesOld bool
	// dropsBlindly: an expired reservation is dropped without a look.
	dropsBlindly bool
	// answersEarly: charges are answered before they are written.
	answersEarly bool
	// overwrites: a replica's writes meet no conflict.
	overwrites bool
	// opensEarly: a ledger in place of a lost one is opened while requests may be under way that the lost one
	// admitted.
	opensEarly bool
	// trustsMachine: that a machine knows a ledger is taken for its being there.
	trustsMachine bool
	// renames: a ledger is named though the quota has changed since it was read.
	renames bool
	// oldGeneration: such a ledger doesn't tell which spec is stored.
	oldGeneration bool
	// shortLife: reservations end before the API server gives up.
	shortLife bool
	// noJoin: the figures of an older count hold though a namespace joined.
	noJoin bool
	// noProof: a namespace is counted before all that it brought is.
	noProof bool
	// leftProves: a namespace is counted too early as another one leaves.
	leftProves bool
	// endless: a holder ignores that its escrow has ended.
	endless bool
	// noRecall: an escrow that was asked back is not waited for.
	noRecall bool
	// dropsEscrows: the escrow of a replica that is gone is dropped at its end.
	dropsEscrows bool
	// deniesUnseen: a denial is answered without a look at the namespace. impatient: nothing that needs time is waited for.
	// waivesAll: a quota that can't decide is waived though it refuses.
	deniesUnseen, impatient, waivesAll bool
	// noModeFence: a fence binds no replica for which the limits only advise.
	noModeFence bool
	// enforcesAll: limits that only advise are enforced.
	enforcesAll bool
	// rarelyLooks: a spec's version is read every ten seconds at most.
	rarelyLooks bool
	// byWriter: that ends sooner by the time that its writer stored.
	byWriter aged
	// silent: it is not reported that a ledger does not take the count.
	silent bool
	// outlives: a process goes on with its memory after etcd was restored.
	outlives bool
	// trustsLost: a ledger is taken as it is though it was written from the memory of another history.
	trustsLost bool
	// plainByMost: any charge may take surge. escrowByMost: escrow is taken from surge, and granted to any charge.
	// besides: surge that is taken doesn't count against other charges.
	plainByMost, escrowByMost, besides bool
	// noSurgeFence: a lowered surge raises no fence. largerSurge: of two surges that both bind, the larger one does.
	noSurgeFence, largerSurge bool
	// believes: an object of which it isn't known replaces another one.
	believes bool
	// surges: quotas have surge. escrow: replicas take escrows. modes: quotas change between Deny and Audit. restores: etcd is put back to backups.
	surges, escrow, modes, restores bool
	// theme is of all schedules that look for it; zero for any.
	theme int
	// first is the seed of the first schedule.
	first uint64
}

func noMutation() mutation { return mutation{} }

func (w *world) life() time.Duration {
	if w.mutation.shortLife {
		return 10 * time.Second
	}
	return life
}

// aged is a kind of thing that ends by its age.
type aged int

const (
	_ aged = iota
	reservations
	doubts
	seals
	fences
	escrowed
)

// admit changes the next action of a front end.
func (m mutation) admit(r *request, next admission.Action) admission.Action {
	undecided, isUndecided := r.facts.Outcome.Decision.(ledger.Undecided)
	switch {
	case m.deniesUnseen && next.Look == admission.Namespace, m.impatient && next.Do == admission.Wait:
		return admission.Action{}
	case m.waivesAll && isUndecided && next.Do == admission.Answer:
		for _, quota := range r.facts.ChargedTo {
			if quota.Name == undecided.Quota {
				waiver := admission.Waiver{Quota: quota.Basis, Waived: admission.Entirely}
				return admission.Action{Do: admission.Charge, Waivers: append(slices.Clone(r.facts.Waivers), waiver)}
			}
		}
	}
	return next
}

// know changes the knowledge of namespaces that a front end claims.
func (m mutation) know(r *request) {
	for i, covering := range r.covering {
		known := &r.knowledge[i]
		if m.noKnowledge {
			*known = ledger.Knowledge{Seen: 1 << 62}
		}
		if own := r.world.selected[r.namespace][slices.Index(r.world.vocabulary.quotas[:], covering.Limits.Name)]; m.joinsAlone && own <= r.saw {
			known.Joined = min(known.Joined, own)
		}
		if m.boasts {
			known.All = r.world.revision
		}
	}
}

// loosen changes the limits by which a charge is judged, or only granted from escrow.
func (m mutation) loosen(r *request, q int, charge *ledger.Charge) {
	if m.besides && !r.facts.Replaces {
		surging := figures{}
		for _, object := range slices.Concat(r.world.objects[widgets].newest, r.world.objects[claims].newest) {
			if object != nil && r.world.selected[object.namespace][q] != 0 && object.parts[0].surges {
				surging = surging.plus(object.size)
			}
		}
		charge.Limits.Hard = r.world.hard(q, r.world.amounts(charge.Limits.Hard).plus(surging))
	}
	if !m.plainByMost && !m.escrowByMost {
		return
	}
	driver := r.replica.driver(q)
	known := driver.machine.Current().State
	fits := ledger.IsGranted(ledger.Edit(known).Judge(*charge))
	for key, held := range known.Escrows {
		fits = fits || key.Process == driver.holder && r.world.amounts(held.Amounts).max(masked(q, r.rise)) == r.world.amounts(held.Amounts)
	}
	if m.plainByMost || fits {
		charge.Limits.Hard, charge.Limits.Surge = charge.Limits.Most(), nil
	}
}

// seal is how long a ledger stays sealed that replaces a lost one.
func (w *world) seal() time.Duration {
	if w.mutation.opensEarly {
		return w.life() / 2
	}
	return w.life()
}

// observation changes the observation of a count that a machine is shown.
func (m mutation) observation(d *driver, observation *ledger.Observation) *ledger.Observation {
	if m.noTouch || m.noTouchAtAll {
		for source := range observation.Touched {
			if source != ledger.Namespaces || m.noTouchAtAll {
				delete(observation.Touched, source)
			}
		}
	}
	if m.noJoin {
		observation.Joined = 0
	}
	if m.takesOld {
		for source, version := range d.machine.Current().State.Counted {
			observation.Counted[source] = max(observation.Counted[source], version)
		}
	}
	if m.lazy > 0 && d.isToWait(observation, m.lazy) {
		return nil
	}
	return observation
}

// isToWait holds back an observation that raises the charged amounts.
func (d *driver) isToWait(observation *ledger.Observation, wait time.Duration) bool {
	now := d.replica.now()
	if d.machine.Current().State.Weigh(*observation).Waits {
		d.held = time.Time{}
		return false
	}
	if d.held.IsZero() {
		d.held = now.Add(wait)
	}
	return d.held.After(now)
}

// answerEarly answers the requests that are about to get a reservation.
func (w *world) answerEarly(d *driver, next ledger.State) {
	for _, waiter := range d.waiting {
		for key := range next.Reservations {
			request := w.charged[key]
			if request != nil && request.charging.reply == waiter.answer && !waiter.answer.came {
				waiter.answer.came = true
				waiter.answer.answer.Decision = ledger.Granted{}
			}
		}
	}
}
