// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"strconv"
	"strings"
	"time"

	"gopkg.in/inf.v0"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// An escrow is room that one replica has reserved before it is asked: until a stated time it grants from it without a
// write. It is a reservation for objects that the replica names later, and is charged, sized, stored and shown as any
// other. O'Neil, The Escrow Transactional Method (1986).
//
// One write records the grants: it replaces the escrow by reservations for the objects and by the next escrow. Other
// replicas ask for an escrow back by marking it as recalled; then its holder records, and takes none for a while.

// escrows is the resource that an escrow is a reservation of. Nothing serves it.
var escrows = schema.GroupVersionResource{Group: "quota.sharedquota.dev", Version: "v1", Resource: "escrows"}

// recalled is the From of an escrow that is asked back.
const recalled = "recalled"

// NewEscrow returns an escrow. It has a slot of its own, by a name that no other has: a container that starts
// again has the hostname of the one before. The key's UID is of the process that holds it, and its attempt tells the
// escrows of one process apart that must not replace each other.
func NewEscrow(holder string, key Key, amounts corev1.ResourceList, expiry time.Time) Reservation {
	name := strings.Join([]string{holder, string(key.UID), key.Attempt}, "/")
	return Reservation{
		Object: Object{Resource: escrows, Name: name, UID: key.UID}, Attempt: key.Attempt, Amounts: amounts, Expiry: expiry,
	}
}

// Renewed returns the escrow in another Life, by a number that its holder uses once. So an escrow that is renewed again
// and again never grows old.
func (r Reservation) Renewed(number int) Reservation {
	r.Name += "/" + strconv.Itoa(number)
	return r
}

// Next is the key of an escrow besides this one, of the same process.
func (k Key) Next() Key {
	number, _ := strconv.Atoi(k.Attempt)
	return Key{UID: k.UID, Attempt: strconv.Itoa(number + 1)}
}

// IsEscrow reports whether a reservation is a replica's escrow.
func (r Reservation) IsEscrow() bool { return r.Resource == escrows }

func (r Reservation) escrow() int {
	if r.IsEscrow() {
		return 1
	}
	return 0
}

// Holder returns the holder of an escrow.
func (r Reservation) Holder() string {
	holder, _, _ := strings.Cut(r.Name, "/")
	return holder
}

// IsRecalled reports whether an escrow is asked back.
func (r Reservation) IsRecalled() bool { return r.IsEscrow() && r.From == recalled }

// ForeignEscrows returns the escrows that are not of one process.
func (s State) ForeignEscrows(own types.UID) []Reservation {
	var foreign []Reservation
	for _, one := range s.index.escrowsOf(s.Reservations) {
		if one.UID != own {
			foreign = append(foreign, one)
		}
	}
	return foreign
}

// EditWithoutEscrows starts a draft from a state as it would be if no replica held any.
func EditWithoutEscrows(state State) *Draft {
	draft := Edit(state)
	for _, one := range state.index.escrowsOf(state.Reservations) {
		draft.remove(one.Key())
	}
	draft.changed = false
	return draft
}

// escrowsOf returns the escrows among reservations.
func (i *index) escrowsOf(reservations map[Key]Reservation) []Reservation {
	if i != nil && i.escrows == 0 {
		return nil
	}
	var found []Reservation
	for _, reservation := range reservations {
		if reservation.IsEscrow() {
			found = append(found, reservation)
		}
	}
	return found
}

// Take makes an escrow hold twice the demand, in place of the escrow that has the same key. It returns the escrow; none
// if the draft can't judge charges by the limits, or if of some resource nothing may be taken: all escrows together
// hold at most one part in so many of the amount that would be free without any. Of a resource for which nothing is
// refused, as much is taken as is wanted once its limit is reached.
func (d *Draft) Take(escrow Reservation, demand Demand, limits Limits, parts int64) Reservation {
	wanted := demand.twice()
	amounts := d.affordable(wanted, limits, parts)
	if !d.decides(limits) || len(amounts) == 0 || len(amounts) < len(wanted) {
		return Reservation{}
	}
	escrow.Amounts = amounts
	d.put(escrow)
	d.changed = true
	return escrow
}

// Return removes an escrow.
func (d *Draft) Return(escrow Key) { d.remove(escrow) }

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
	for _, one := range d.state.Reservations {
		if one.IsEscrow() && one.UID != own && !one.IsRecalled() {
			one.From = recalled
			d.put(one)
			asks, d.changed = true, true
		}
	}
	return asks
}

// Escrow returns an escrow that the draft has.
func (d *Draft) Escrow(key Key) (Reservation, bool) {
	held, known := d.state.Reservations[key]
	return held, known && held.IsEscrow()
}

// Spend judges a charge and, if it is granted, reserves it from an escrow: the sum of all charges stays as it is. A
// probe is only judged. It grants neither updates nor attempts whose slot is taken: the amount that these add depends
// on other attempts. Nor does it grant a charge that the ledger can't hold, because grants are recorded.
func (d *Draft) Spend(escrow Key, charge Charge, probe bool) (granted Granted, ok bool) {
	held, ok := d.Escrow(escrow)
	wanted := charge.Reservation
	_, known := d.state.Reservations[wanted.Key()]
	if !ok || held.IsRecalled() || known || wanted.From != "" || len(d.index.slots[wanted.slot()]) > 0 ||
		!d.hasRoomFor(wanted, charge.Limits) {
		return Granted{}, false
	}
	rest := held
	rest.Amounts, ok = less(held.Amounts, charge.Limits.Charged(wanted.Amounts))
	if !ok {
		return Granted{}, false
	}
	d.put(rest)
	if probe {
		defer d.put(held)
		granted, ok = d.Judge(charge).(Granted)
		return granted, ok
	}
	if granted, ok = d.Reserve(charge).(Granted); !ok {
		d.put(held)
	}
	return granted, ok
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
		d.state.Forgotten() == 0 && d.state.Sealed.IsZero() && d.state.Fence.Generation == 0
}

// Unsettles reports whether grants on a state must not be made on another: the states differ in more than in amounts.
func (s State) Unsettles(next State) bool {
	for name := range s.Used {
		if _, counted := next.Used[name]; !counted {
			return true
		}
	}
	return s.Basis != next.Basis || s.Counted[Namespaces] != next.Counted[Namespaces] || !s.Sealed.Equal(next.Sealed) ||
		s.Fence.Generation != next.Fence.Generation || !s.Fence.Until.Equal(next.Fence.Until) ||
		!quota.Equals(s.Fence.Hard, next.Fence.Hard)
}

// Spent reduces an escrow by the grants from it.
func (d *Draft) Spent(escrow Key, granted []Reservation) {
	if held, ok := d.Escrow(escrow); ok {
		held.Amounts = rest(held.Amounts, granted)
		d.put(held)
	}
}

// Bound reduces an escrow to at most the next one without the grants from that.
func (d *Draft) Bound(escrow Key, next Reservation, granted []Reservation) {
	held, ok := d.Escrow(escrow)
	if !ok {
		return
	}
	most, least := rest(next.Amounts, granted), corev1.ResourceList{}
	for name, amount := range held.Amounts {
		if limit, has := most[name]; has {
			least[name] = amount
			if limit.Cmp(amount) < 0 {
				least[name] = limit
			}
		}
	}
	held.Amounts = least
	d.put(held)
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
// from it. Newest is the version that a live look found after its expiry, for each source. Amounts of sources that have
// not been counted so far stay.
func (d *Draft) SettleEscrow(expired Reservation, count Observation, newest map[schema.GroupResource]uint64) {
	held, ok := d.Escrow(expired.Key())
	if !ok || held.Life() != expired.Life() || d.state.Quota != count.Quota {
		return
	}
	d.Settle(count)
	short := func(source schema.GroupResource) bool {
		version, looked := newest[source]
		return !looked || d.state.Counted[source] < version
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
	d.settleReservation(held.Key(), held, waiting)
}
