// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// beginExpiry begins to look for the objects of reservations that are old.
func (t *task) beginExpiry(c *counter) {
	known, now := c.replica.current(t.quota), c.replica.now()
	state, w, ages := known.State, c.replica.world, c.ages[t.quota]
	ages.See(now, state.Lives(known.Version.UID)...)
	t.forgotten = state.Forgotten
	old := w.life()
	if w.mutation.dropsEscrows {
		old = escrowLife
	}
	escrows, next := ledger.Old(ages, now, state.Escrows, func(one ledger.Escrow) (time.Duration, bool) {
		return w.due(c.replica, escrowed, ages, one.Life(), old, one.Expiry), true
	})
	c.again(t.quota, next)
	t.escrows = escrows
	expired, next := ledger.Old(ages, now, state.Reservations, func(one ledger.Reservation) (time.Duration, bool) {
		return w.due(c.replica, reservations, ages, one.Life(), w.life(), one.Expiry), true
	})
	c.again(t.quota, next)
	if len(escrows) > 0 {
		c.again(t.quota, time.Second)
	}
	for _, reservation := range expired {
		c.again(t.quota, time.Second)
		if c.awaits(t.quota, state, reservation) {
			t.expired = append(t.expired, reservation)
		} else {
			t.dropped = append(t.dropped, reservation)
		}
	}
	t.doubt(c, state)
	if state.Fence.Generation != 0 {
		left := w.endsIn(c.replica, fences, ages, state.Fence.Life(known.Version.UID), w.life(), state.Fence.Until)
		c.again(t.quota, max(left, time.Second))
		if left <= 0 {
			t.fence = state.Fence
		}
	}
	t.joined = c.joined(t.quota, state)
	t.nextLook(c)
}

// doubt looks for the objects of reservations that are not young any more.
func (t *task) doubt(c *counter, state ledger.State) {
	w, now, ages := c.replica.world, c.replica.now(), c.ages[t.quota]
	old, next := ledger.Old(ages, now, state.Reservations, func(one ledger.Reservation) (time.Duration, bool) {
		if one.Doubtful || ages.Left(now, one.Life(), w.life()) <= 0 {
			return 0, false
		}
		left := w.endsIn(c.replica, doubts, ages, one.Life(), doubtAfter, one.Expiry.Add(doubtAfter-w.life()))
		return doubtAfter - ages.Left(now, one.Life(), doubtAfter) + left, true
	})
	c.again(t.quota, next)
	for _, reservation := range old {
		c.again(t.quota, time.Second)
		if !w.isThere(reservation) {
			t.doubted = append(t.doubted, reservation)
		}
	}
}

// due is how old something is when its life ends.
func (w *world) due(by *replica, what aged, ages ledger.Ages, life ledger.Life, old time.Duration, stored time.Time) time.Duration {
	return old - ages.Left(by.now(), life, old) + w.endsIn(by, what, ages, life, old, stored)
}

// endsIn is how long it takes until something is over.
func (w *world) endsIn(by *replica, what aged, ages ledger.Ages, life ledger.Life, old time.Duration, stored time.Time) time.Duration {
	left := ages.Left(by.now(), life, old)
	if w.mutation.byWriter == what {
		left = min(left, stored.Sub(by.wall()))
	}
	return left
}

// sealed is how long a ledger stays sealed that replaces a lost one.
func (c *counter) sealed(t *task) time.Duration {
	seal, w := ledger.Seal(t.replaced.UID), c.replica.world
	c.seals[t.quota].See(c.replica.now(), seal)
	return w.endsIn(c.replica, seals, c.seals[t.quota], seal, w.seal(), t.state.Sealed.Add(w.seal()))
}

func (c *counter) awaits(q int, state ledger.State, reservation ledger.Reservation) bool {
	awaits := true
	c.count.Read(c.replica.world.vocabulary.quotas[q], func(view counting.View) {
		awaits = counting.Awaits(view, state, reservation)
	})
	return awaits
}

// nextLook goes on with the next reservation, then the fence, then the write that is due.
func (t *task) nextLook(c *counter) {
	w := c.replica.world
	if w.mutation.dropsBlindly {
		t.dropped, t.expired = append(t.dropped, t.expired...), nil
	}
	switch {
	case len(t.joined) > 0:
		t.stage = taskProve
	case len(t.expired) > 0:
		t.stage = taskLook
	case t.stage != taskGeneration && t.fence.Generation != 0:
		t.stage = taskGeneration
	case (t.forgotten != 0 || len(t.escrows) > 0 && !w.mutation.dropsEscrows) && t.newest == nil:
		t.stage = taskDemand
	case len(t.dropped)+len(t.doubted) > 0 || t.vain || t.newest != nil || w.mutation.dropsEscrows && len(t.escrows) > 0:
		t.edit(c)
	default:
		t.stage = taskDone
	}
}

// joined returns the namespaces whose objects have not been looked up yet.
func (c *counter) joined(q int, known ledger.State) []counting.Joined {
	var joined []counting.Joined
	c.count.Read(c.replica.world.vocabulary.quotas[q], func(view counting.View) {
		if !c.replica.world.mutation.noProof {
			joined = slices.DeleteFunc(counting.Unproved(view, known), func(one counting.Joined) bool { return one.Seen })
		}
	})
	return joined
}

// unproved returns all joins that are unproved, even if the ledger has counted them.
func (c *counter) unproved(q int) (joined []counting.Joined) {
	c.count.Read(c.replica.world.vocabulary.quotas[q], func(view counting.View) {
		joined = view.Unproved(func(uint64) bool { return false })
	})
	return joined
}

// advance lets time pass for the count, which gives up joins that were unproved for too long.
func (c *counter) advance() {
	var before [maxQuotas][]counting.Joined
	for q := range before {
		before[q] = c.unproved(q)
	}
	c.count.Advance(c.replica.now(), 2*life)
	for q := range before {
		if len(c.unproved(q)) < len(before[q]) {
			c.replica.world.waive(q, before[q])
		}
	}
}

func (w *world) waive(q int, joined []counting.Joined) {
	for _, one := range joined {
		n := slices.Index(w.vocabulary.namespaces[:], one.Namespace)
		w.waived[n][q] = w.joined[n][q]
	}
}

// prove looks up the objects that have come with namespaces that joined.
func (c *counter) prove(q int, joined []counting.Joined) {
	w := c.replica.world
	for _, one := range joined {
		brought := map[schema.GroupResource]uint64{}
		for source := range maxSources {
			brought[w.sources[source].GroupResource()] = w.newestIn(source, slices.Index(w.vocabulary.namespaces[:], one.Namespace))
		}
		c.count.Prove(w.vocabulary.quotas[q], one, brought)
	}
}

func (w *world) newestIn(source, namespace int) uint64 {
	newest := uint64(0)
	for _, object := range w.objects[source].newest {
		if object != nil && object.namespace == namespace {
			newest = max(newest, object.revision)
		}
	}
	return newest
}

func (t *task) edit(c *counter) {
	t.stage = taskEdit
	driver := c.replica.driver(t.quota)
	kept := driver.observed
	count := driver.observe(machine.Observe{Ledger: driver.machine.Current().State})
	driver.observed = kept
	t.reply = c.replica.driver(t.quota).do(func(id machine.RequestID) machine.Event {
		return machine.Edit{ID: id, Change: func(draft *ledger.Draft) {
			for _, reservation := range t.dropped {
				draft.Drop(reservation.Key())
			}
			for _, reservation := range t.doubted {
				draft.Doubt(reservation.Key())
			}
			if t.vain {
				draft.RemoveFence(t.fence, t.generation)
			}
			if t.newest != nil {
				draft.Require(t.forgotten, *t.newest)
			}
			for _, escrow := range t.escrows {
				switch {
				case c.replica.world.mutation.dropsEscrows:
					if held, holds := draft.Peek().Escrows[escrow.EscrowKey]; holds && held.Life() == escrow.Life() {
						draft.Return(escrow.EscrowKey)
					}
				case count != nil && t.newest != nil:
					draft.SettleEscrow(escrow, *count, *t.newest)
				}
			}
		}}
	})
}

// goOnExpiry makes one live look. A look that fails keeps its reservation.
func (t *task) goOnExpiry(c *counter, outcome outcome) {
	w := c.replica.world
	switch t.stage {
	case taskLook:
		reservation := t.expired[0]
		fails := outcome != succeeds || w.unserved && reservation.Resource == w.sources[widgets]
		t.looked(c, !fails && !w.isThere(reservation))
	case taskProve:
		if outcome == succeeds {
			c.prove(t.quota, t.joined)
		}
		t.joined = nil
		t.nextLook(c)
	case taskDemand:
		if t.newest = w.newest(); outcome != succeeds {
			t.forgotten, t.newest, t.escrows = 0, nil, nil
		}
		t.nextLook(c)
	default:
		t.generation = 0
		if found := w.quotas.newest[t.quota]; found != nil {
			t.generation = found.generation
		}
		t.vain = outcome == succeeds && t.generation < t.fence.Generation
		t.nextLook(c)
	}
	if outcome != succeeds {
		c.again(t.quota, lookSoon)
	}
}

func (t *task) looked(c *counter, drop bool) {
	if drop {
		t.dropped = append(t.dropped, t.expired[0])
	} else {
		c.again(t.quota, time.Second)
	}
	t.expired = t.expired[1:]
	t.nextLook(c)
}

// isThere reports whether the write that a reservation was made for has happened.
func (w *world) isThere(reservation ledger.Reservation) bool {
	source := slices.Index(w.sources[:], reservation.Resource)
	for _, object := range w.objects[source].newest {
		if object != nil && object.uid == reservation.UID {
			return reservation.From == "" || object.revision > parse(reservation.From)
		}
	}
	return false
}

func parse(revision string) uint64 {
	number, err := strconv.ParseUint(revision, 10, 64)
	if err != nil {
		return 0
	}
	return number
}
