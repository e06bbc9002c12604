// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/admission"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/namespaces"
)

// charge charges all quotas that cover the namespace, or none.
func (r *request) charge() {
	w := r.world
	r.charging, r.passed = charging{}, [maxQuotas]bool{}
	for i := range r.knowledge {
		r.knowledge[i].Asks = r.action.Asks
	}
	expiry := r.replica.stamp(w.life())
	// As package driver does: quotas that only advise come last.
	inOrder := slices.SortedStableFunc(slices.Values(r.covering), func(a, b definition.Definition) int {
		switch {
		case a.Limits.Advisory == b.Limits.Advisory:
			return 0
		case b.Limits.Advisory:
			return -1
		default:
			return 1
		}
	})
	for _, covering := range inOrder {
		limits := covering.Limits
		q := slices.Index(w.vocabulary.quotas[:], limits.Name)
		amounts, waived := masked(q, r.rise), r.action.Waivers.Of(limits.Basis)
		if r.passed[q] = waived == admission.Entirely; amounts == (figures{}) || r.passed[q] {
			continue
		}
		if w.mutation.enforcesAll {
			limits.Advisory = false
		}
		charge := ledger.Charge{
			Limits: limits,
			Reservation: ledger.Reservation{
				Object: ledger.Object{
					Resource: w.sources[r.source], Namespace: w.vocabulary.namespaces[r.namespace], Name: w.names[r.name], UID: r.uid,
				},
				From: w.from(r), Attempt: r.attempt, Amounts: w.list(amounts), Expiry: expiry,
			},
			Knowledge: namespaces.Covered{Definitions: r.covering, Knowledge: r.knowledge}.Of(limits.Name), MaxDoubtful: 100,
			Unjudged: waived == admission.Judgement,
		}
		if r.facts.Replaces {
			charge.Replaces = ledger.Surger{
				UID: types.UID(charge.Reservation.Namespace + charge.Reservation.Name), Kind: "Workload", Namespace: charge.Reservation.Namespace,
				Name: charge.Reservation.Name, Since: r.replica.stamp(0),
			}
		}
		w.mutation.loosen(r, q, &charge)
		r.charging.quotas, r.charging.charges = append(r.charging.quotas, q), append(r.charging.charges, charge)
	}
	if len(r.charging.charges) == 0 {
		r.decided(machine.Answer{Decision: ledger.Granted{}})
		return
	}
	patience := options().Patience
	for _, q := range r.charging.quotas {
		patience = min(patience, r.replica.driver(q).machine.Patience())
	}
	r.charging.patience, r.charging.probing = r.replica.now().Add(patience), len(r.charging.charges) > 1
	w.charged[r.key()] = r
	r.submit()
}

func (w *world) from(r *request) string {
	if r.from == 0 {
		return ""
	}
	return w.number(r.from)
}

// submit hands the next charge to its machine. Several are first judged; while some are
// held, room for the next is not waited for.
func (r *request) submit() {
	c := &r.charging
	patience := c.patience
	if len(c.charges) > 1 && !c.probing {
		patience = time.Time{}
	}
	r.stage = stageCharge
	charge, probe := c.charges[c.at], c.probing
	c.driver = r.replica.driver(c.quotas[c.at])
	c.reply = c.driver.do(func(id machine.RequestID) machine.Event {
		return machine.Charge{ID: id, Charge: charge, Probe: probe, Patience: patience}
	})
	switch {
	case probe:
	case !c.reply.came:
		c.driver.waiting[len(c.driver.waiting)-1].request = r
	case ledger.IsGranted(c.reply.answer.Decision):
		r.grantedAtOnce(c.quotas[c.at])
	}
}

// grantedAtOnce takes it that a charge was granted without a write, on the ledger that the machine knew.
func (r *request) grantedAtOnce(q int) {
	w, by := r.world, r.charging.driver
	w.counts.atOnce++
	for _, change := range w.ledgers.changes {
		if change.value != nil && change.value.snapshot.Version == by.machine.Current().Version {
			granting := *change.value
			r.granted[q] = &granting
		}
	}
	w.unrecorded[recording{q, r.key()}] = by
	w.measureRoom(q)
}

// charged takes the answer of one machine.
func (r *request) charged() {
	c := &r.charging
	answer := c.reply.answer
	if answer.Err != nil && c.charges[c.at].Limits.Advisory {
		r.cannotDecide(answer.Err) // as driver.Group takes it
		r.passed[c.quotas[c.at]] = true
		answer.Decision, answer.Err = ledger.Granted{}, nil
	}
	decision, granted := answer.Decision.(ledger.Granted)
	if len(decision.Remarks) > 0 {
		r.world.counts.remarked++
		r.passed[c.quotas[c.at]] = r.passed[c.quotas[c.at]] || !c.probing && !r.isReserved(c.quotas[c.at])
	}
	switch {
	case granted && c.at+1 < len(c.charges):
		c.at++
		r.submit()
	case granted && c.probing:
		c.at, c.probing = 0, false
		r.submit()
	case granted, c.probing, len(c.charges) == 1:
		r.decided(answer)
	default:
		r.release(c.at)
		if _, denied := answer.Decision.(ledger.Denied); denied && answer.Err == nil && r.replica.now().Before(c.patience) {
			c.at, c.probing = 0, true
			r.submit()
			return
		}
		r.decided(answer)
	}
}

// isReserved reports whether all of it is reserved in a quota's ledger. A charge that couldn't be judged may not be.
func (r *request) isReserved(q int) bool {
	granted := r.granted[q]
	return granted != nil && r.world.amounts(granted.snapshot.State.Reservations[r.key()].Amounts) == masked(q, r.rise)
}

// release gives back the first charges.
func (r *request) release(count int) {
	for _, q := range r.charging.quotas[:count] {
		r.replica.driver(q).abandon(0, r.key())
	}
}

// giveUp is how the front end takes it that its caller has gone, or that a charge takes too long.
func (r *request) giveUp() {
	if r.stage == stageCharge {
		c := &r.charging
		id, key := c.reply.answer.ID, r.key()
		if c.probing {
			key = ledger.Key{}
		}
		c.driver.abandon(id, key)
		if !c.probing {
			r.release(c.at)
		}
	}
	r.stage = stageNone
}
