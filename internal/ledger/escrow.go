// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"time"

	"gopkg.in/inf.v0"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// Escrow is room that one replica has reserved before it is asked: until a stated time it grants from it without a
// write. It is charged as the reservations are. O'Neil, The Escrow Transactional Method (1986).
//
// One write records the grants: it replaces the escrow by reservations for the objects and by the next escrow. Other
// replicas ask for an escrow back by marking it as recalled; then its holder records, and takes none for a while.
type Escrow struct {
	EscrowKey
	// Holder is the hostname of the replica. A container that starts again has that of the one before.
	Holder string
	// Renewal is a number that the holder uses once. So an escrow that is renewed again and again never grows old.
	Renewal int
	// Recalled: it is asked back.
	Recalled bool
	// Amounts are the amounts that are granted from it.
	Amounts corev1.ResourceList
	// Expiry is for people: when it ends by the clock of its writer.
	Expiry time.Time
}

// EscrowKey identifies an escrow within a ledger.
type EscrowKey struct {
	// Process holds it. No other process has the same UID.
	Process types.UID
	// Number tells the escrows of one process apart that must not replace each other.
	Number int
}

// Next is the key of an escrow besides this one, of the same process.
func (k EscrowKey) Next() EscrowKey { return EscrowKey{Process: k.Process, Number: k.Number + 1} }

// ForeignEscrows returns the escrows that are not of one process.
func (s State) ForeignEscrows(own types.UID) []Escrow {
	var foreign []Escrow
	for key, one := range s.Escrows {
		if key.Process != own {
			foreign = append(foreign, one)
		}
	}
	return foreign
}

// EditWithoutEscrows starts a draft from a state as it would be if no replica held any.
func EditWithoutEscrows(state State) *Draft {
	draft := Edit(state)
	for key := range state.Escrows {
		draft.Return(key)
	}
	draft.changed = false
	return draft
}

// Take makes an escrow hold twice the demand, in place of the escrow that has the same key. It returns the escrow; nil
// if the draft can't judge charges by the limits, or if of some resource nothing may be taken: all escrows together
// hold at most one part in so many of the amount that would be free without any. Of a resource for which nothing is
// refused, as much is taken as is wanted once its limit is reached.
func (d *Draft) Take(escrow Escrow, demand Demand, limits Limits, parts int64) *Escrow {
	wanted := demand.twice()
	amounts := d.affordable(wanted, limits, parts)
	if !d.decides(limits) || len(amounts) == 0 || len(amounts) < len(wanted) {
		return nil
	}
	escrow.Amounts = amounts
	d.Hold(escrow)
	return &escrow
}

// Return removes an escrow.
func (d *Draft) Return(key EscrowKey) {
	if held, holds := d.state.Escrows[key]; holds {
		d.index.hold(held, Escrow{})
		delete(d.state.Escrows, key)
		d.changed = true
	}
}

// Hold puts an escrow in place of the one that has the same key. It doesn't check limits.
func (d *Draft) Hold(escrow Escrow) {
	d.index.hold(d.state.Escrows[escrow.EscrowKey], escrow)
	d.state.Escrows[escrow.EscrowKey] = escrow
	d.changed = true
}

// Admit reserves for an object that was granted from an escrow. It doesn't check limits: the object was charged with
// the escrow.
func (d *Draft) Admit(granted Reservation) {
	d.put(granted)
	d.changed = true
}

// Recall asks for all escrows back that are not of one process, and reports whether there were any
// that weren't asked for.
func (d *Draft) Recall(own types.UID) bool {
	asks := false
	for key, one := range d.state.Escrows {
		if key.Process != own && !one.Recalled {
			one.Recalled = true
			d.Hold(one)
			asks = true
		}
	}
	return asks
}

// Spend judges a charge and, if it is granted, reserves it from an escrow: the sum of all charges stays as it is. A
// probe is only judged. It grants neither updates nor attempts whose slot is taken: the amount that these add depends
// on other attempts. Nor does it grant a charge that the ledger can't hold, because grants are recorded.
func (d *Draft) Spend(from EscrowKey, charge Charge, probe bool) (granted Granted, ok bool) {
	held, ok := d.state.Escrows[from]
	wanted := charge.Reservation
	_, known := d.state.Reservations[wanted.Key()]
	if !ok || held.Recalled || known || wanted.From != "" || len(d.index.slots[wanted.slot()]) > 0 ||
		!d.hasRoomFor(wanted, charge.Limits) {
		return Granted{}, false
	}
	rest := held
	rest.Amounts, ok = less(held.Amounts, charge.Limits.Charged(wanted.Amounts))
	if !ok {
		return Granted{}, false
	}
	d.Hold(rest)
	if probe {
		defer d.Hold(held)
		granted, ok = d.Judge(charge).(Granted)
		return granted, ok
	}
	if granted, ok = d.Reserve(charge).(Granted); !ok {
		d.Hold(held)
	}
	return granted, ok
}

// HoldsLessThanHalf reports whether an escrow holds less than half of one of these amounts.
func (d *Draft) HoldsLessThanHalf(key EscrowKey, of corev1.ResourceList) bool {
	held := d.state.Escrows[key].Amounts
	for name, amount := range of {
		left := held[name].DeepCopy() // it may have a pointer to its digits
		left.Add(left)
		if left.Cmp(amount) < 0 {
			return true
		}
	}
	return false
}

// less subtracts amounts, and reports whether there was enough of each.
func less(from, amounts corev1.ResourceList) (corev1.ResourceList, bool) {
	left := from.DeepCopy()
	for name, amount := range amounts {
		if amount.IsZero() {
			continue
		}
		quantity, has := left[name]
		quantity.Sub(amount)
		if !has || quantity.Sign() < 0 {
			return nil, false
		}
		left[name] = quantity
	}
	return left, true
}

// decides reports whether the draft can judge charges by the limits, and no edit of them is under way.
func (d *Draft) decides(limits Limits) bool {
	return d.state.Quota == limits.Quota && d.state.Digest == limits.Digest && d.state.Generation <= limits.Generation &&
		d.state.Forgotten == 0 && d.state.Sealed.IsZero() && d.state.Fence.Generation == 0
}

// Unsettles reports whether grants on a state must not be made on another: the states differ in more than in amounts.
func (s State) Unsettles(next State) bool {
	for name := range s.Used {
		if _, counted := next.Used[name]; !counted {
			return true
		}
	}
	return s.Basis != next.Basis || s.Forgotten != next.Forgotten || s.Counted[Namespaces] != next.Counted[Namespaces] ||
		!s.Sealed.Equal(next.Sealed) ||
		s.Fence.Generation != next.Fence.Generation || !s.Fence.Until.Equal(next.Fence.Until) ||
		!quota.Equals(s.Fence.Hard, next.Fence.Hard) || !quota.Equals(s.Fence.Surge, next.Fence.Surge)
}

// Spent reduces an escrow by the grants from it.
func (d *Draft) Spent(from EscrowKey, granted []Reservation) {
	if held, ok := d.state.Escrows[from]; ok {
		held.Amounts = rest(held.Amounts, granted)
		d.Hold(held)
	}
}

// Bound reduces an escrow to at most the next one, which is nil for none, without the grants from that.
func (d *Draft) Bound(from EscrowKey, next *Escrow, granted []Reservation) {
	held, ok := d.state.Escrows[from]
	if !ok {
		return
	}
	most, least := corev1.ResourceList{}, corev1.ResourceList{}
	if next != nil {
		most = rest(next.Amounts, granted)
	}
	for name, amount := range held.Amounts {
		if limit, has := most[name]; has {
			least[name] = amount
			if limit.Cmp(amount) < 0 {
				least[name] = limit
			}
		}
	}
	held.Amounts = least
	d.Hold(held)
}

// rest returns the amounts without the grants.
func rest(amounts corev1.ResourceList, granted []Reservation) corev1.ResourceList {
	left := amounts.DeepCopy()
	for _, one := range granted {
		for name, amount := range one.Amounts {
			if quantity, has := left[name]; has {
				quantity.Sub(amount)
				left[name] = quantity
			}
		}
	}
	for name, quantity := range left {
		if quantity.Sign() <= 0 {
			delete(left, name)
		}
	}
	return left
}

// affordable returns how much of the wanted amounts may be taken. Amounts that are zero are left out.
func (d *Draft) affordable(wanted corev1.ResourceList, limits Limits, parts int64) corev1.ResourceList {
	affordable := corev1.ResourceList{}
	for name, amount := range wanted {
		used, counted := d.state.Used[name]
		if !counted {
			continue
		}
		limit, limited := limits.Hard[name]
		if !limited {
			affordable[name] = amount.DeepCopy()
			continue
		}
		held := d.index.escrowed[name]
		free := limit.DeepCopy()
		free.Sub(used)
		free.Sub(d.index.reserved[name])
		free.Add(held)
		part := new(inf.Dec).QuoRound(free.AsDec(), inf.NewDec(parts, 0), scaleOf(name), inf.RoundDown)
		most := *resource.NewDecimalQuantity(*part, limit.Format)
		most.Sub(held)
		if amount.Cmp(most) < 0 {
			most = amount.DeepCopy()
		}
		switch {
		case most.Sign() > 0:
			affordable[name] = most
		case limits.Advisory:
			affordable[name] = amount.DeepCopy()
		}
	}
	return affordable
}

// SettleEscrow ends an escrow whose holder is gone, once a count is known that includes all that can have been granted
// from it. Newest is what live lists found after its expiry. Amounts of sources that have not been counted so far stay.
func (d *Draft) SettleEscrow(expired Escrow, count Observation, newest Newest) {
	held, ok := d.state.Escrows[expired.EscrowKey]
	if !ok || held.Life() != expired.Life() || d.state.Quota != count.Quota {
		return
	}
	d.Settle(count)
	short := func(source schema.GroupResource) bool {
		version, listed := newest.Versions[source]
		return !listed || d.state.Unlisted.Has(source) || d.state.Counted[source] < version
	}
	waiting := map[corev1.ResourceName]bool{}
	for name, sources := range count.Sources {
		for _, source := range sources {
			waiting[name] = waiting[name] || short(source)
		}
	}
	if _, counted := count.Counted[Namespaces]; !counted {
		return
	}
	switch left := waitingFor(held.Amounts, waiting); {
	case len(left) == 0:
		d.Return(held.EscrowKey)
		d.ends.Settled++
	case len(left) < len(held.Amounts):
		held.Amounts = left
		d.Hold(held)
	}
}
