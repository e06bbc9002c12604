// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"strings"
	"time"

	"gopkg.in/inf.v0"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// Doubts are the doubtful reservations of one namespace: its requests were admitted and, as it seems, failed
// after that, such as by another webhook. They hold room until they expire, because a request may still be
// under way. If the namespace held more than it may, one of them stays for a while longer and holds nothing,
// so that the bound stays in force.
type Doubts struct {
	// Number of the reservations that hold something.
	Number int
	// Amounts are the sum of these reservations.
	Amounts corev1.ResourceList
}

// freePart is the part of the free amount that one namespace may hold so, if that is more than its share of the limit:
// a fifth.
const freePart = 5

// heldPart is the part of the free amount that one namespace may hold before names are looked up: a tenth.
const heldPart = 10

// Doubt marks a reservation as doubtful, unless it was renewed since it was looked for.
func (d *Draft) Doubt(doubtful Reservation) {
	held, known := d.state.Reservations[doubtful.Key()]
	if !known || held.Doubtful || held.Life() != doubtful.Life() {
		return
	}
	held.Doubtful = true
	d.put(held)
	d.changed = true
}

// DropAll drops expired reservations, as Drop does. Of each namespace that held more in doubt than it
// may, one doubtful reservation stays as a memory, which holds nothing. Until is when that ends, for people.
func (d *Draft) DropAll(expired []Reservation, hard corev1.ResourceList, percent int64, until time.Time) {
	stay := d.excessive(hard, percent)
	for _, held := range d.state.Reservations {
		if held.IsMemory() {
			delete(stay, held.Namespace)
		}
	}
	for _, one := range expired {
		held := d.state.Reservations[one.Key()]
		d.Drop(one)
		if _, renewed := d.state.Reservations[one.Key()]; !renewed && held.Doubtful && !held.IsMemory() && stay[held.Namespace] {
			held.Amounts, held.Expiry = nil, until
			d.put(held)
			delete(stay, held.Namespace)
		}
	}
}

// excessive are the namespaces that hold more in doubt than they may.
func (d *Draft) excessive(hard corev1.ResourceList, percent int64) map[string]bool {
	excessive := map[string]bool{}
	charged := d.Charged()
	for namespace, doubts := range d.doubts() {
		for name, held := range doubts.Amounts {
			limit, limited := hard[name]
			most := mostInDoubt(name, held, limit, charged[name], percent)
			if limited && held.Cmp(most) > 0 {
				excessive[namespace] = true
			}
		}
	}
	return excessive
}

// IsMemory reports whether a reservation holds nothing any more and only tells that its namespace is
// suspected, until it expires: see DropAll.
func (r Reservation) IsMemory() bool { return r.Doubtful && len(r.Amounts) == 0 }

// InFlight is how many reservations hold something for an object.
func (s State) InFlight() int {
	number := len(s.Reservations)
	for _, reservation := range s.Reservations {
		if reservation.IsMemory() || reservation.IsEscrow() {
			number--
		}
	}
	return number
}

// Doubtful returns the doubtful reservations of each namespace that has any.
func (s State) Doubtful() map[string]Doubts {
	return (&Draft{state: s, index: s.Indexed().index}).doubts()
}

func (r Reservation) doubt() int {
	if r.Doubtful {
		return 1
	}
	return 0
}

// doubtMore notes that so many more reservations are doubtful.
func (d *Draft) doubtMore(number int) {
	d.index.doubtful += number
	if number != 0 {
		d.suspects = nil
	}
}

// doubts gathers the doubtful reservations. A slot is charged as its largest attempt, and so it is here.
func (d *Draft) doubts() map[string]Doubts {
	if d.index.doubtful == 0 {
		return nil
	}
	slots := map[slot]corev1.ResourceList{}
	doubts := map[string]Doubts{}
	for _, reservation := range d.state.Reservations {
		if reservation.Doubtful && !reservation.IsMemory() {
			in := doubts[reservation.Namespace]
			in.Number++
			doubts[reservation.Namespace] = in
			slots[reservation.slot()] = quota.Max(slots[reservation.slot()], reservation.Amounts)
		}
	}
	for slot, amounts := range slots {
		in := doubts[slot.namespace]
		in.Amounts = quota.Add(in.Amounts, amounts)
		doubts[slot.namespace] = in
	}
	return doubts
}

// suspected returns the amounts of each namespace that has a doubtful reservation: its newer reservations are no better
// known than that one. A slot is charged as its largest attempt.
func (d *Draft) suspected() map[string]corev1.ResourceList {
	suspected := map[string]corev1.ResourceList{}
	for _, reservation := range d.state.Reservations {
		if reservation.Doubtful {
			suspected[reservation.Namespace] = corev1.ResourceList{}
		}
	}
	for slot := range d.index.slots {
		if held, ok := suspected[slot.namespace]; ok {
			suspected[slot.namespace] = quota.Add(held, d.slotAmounts(slot))
		}
	}
	return suspected
}

// HeldBy returns the amounts that a namespace holds for objects that have not been counted, and when the last of its
// reservations expires. A slot is charged as its largest attempt.
func (s State) HeldBy(namespace string) (held corev1.ResourceList, until time.Time) {
	draft := &Draft{state: s, index: s.Indexed().index}
	for slot, keys := range draft.index.slots {
		if slot.namespace != namespace {
			continue
		}
		held = quota.Add(held, draft.slotAmounts(slot))
		for _, key := range keys {
			if expiry := s.Reservations[key].Expiry; expiry.After(until) {
				until = expiry
			}
		}
	}
	return held, until
}

// IsTight reports whether a charge fits and leaves less than a fifth of a limit free, whether its slot holds a doubtful
// reservation, or whether its namespace would hold more than a tenth of the amount that is free without its
// reservations. Recent are charges of the namespace that the ledger may not have yet.
func (s State) IsTight(charge Charge, recent corev1.ResourceList) bool {
	index := s.Indexed().index
	for _, key := range index.slots[charge.Reservation.slot()] {
		if s.Reservations[key].Doubtful {
			return true
		}
	}
	tight := false
	if charge.Limits.Advisory {
		return false
	}
	var held corev1.ResourceList
	for name, amount := range charge.Reservation.Amounts {
		limit, ok := charge.Limits.Hard[name]
		used, counted := s.Used[name]
		if !ok || !counted {
			continue
		}
		free := limit.DeepCopy()
		free.Sub(used)
		free.Sub(index.reserved[name])
		left := free.DeepCopy()
		left.Sub(amount)
		if left.Sign() < 0 {
			return false // it is going to be refused
		}
		left.Mul(freePart)
		tight = tight || left.Cmp(limit) < 0
		asked := recent[name].DeepCopy()
		asked.Add(amount)
		if tight || !isLarge(free, asked, index.reserved[name]) {
			continue // all namespaces together hold little
		}
		if held == nil {
			held, _ = s.HeldBy(charge.Reservation.Namespace)
		}
		tight = isLarge(free, asked, held[name])
	}
	return tight
}

// isLarge reports whether the asked and held amounts are more than a tenth of the amount that would be free without
// them.
func isLarge(free, asked, held resource.Quantity) bool {
	asked, free = asked.DeepCopy(), free.DeepCopy()
	asked.Add(held)
	free.Add(held)
	asked.Mul(heldPart)
	return asked.Cmp(free) > 0
}

// withhold reports whether a charge that fits is refused, because its namespace has doubtful reservations and holds too
// much. A charge that adds nothing to its slot is never refused so.
//
// Together with the charge, the namespace may hold its share of the limit, in percent, or a fifth of the amount that
// would be free without its reservations.
func (d *Draft) withhold(charge Charge, limits Limits, added corev1.ResourceList) (Withheld, bool) {
	if d.index.doubtful == 0 {
		return Withheld{}, false
	}
	if d.suspects == nil {
		d.suspects = d.suspected()
	}
	suspected := d.suspects[charge.Reservation.Namespace]
	withheld := Withheld{
		Quota: charge.Limits.Name, Requested: corev1.ResourceList{}, Held: corev1.ResourceList{}, Limited: corev1.ResourceList{},
	}
	for name, amount := range added {
		limit, limited := limits.Hard[name]
		held, used := suspected[name], d.chargedOf(name)
		if held.Sign() <= 0 || amount.Sign() <= 0 || !limited {
			continue
		}
		most := mostInDoubt(name, held, limit, used, charge.MaxDoubtful)
		with := held.DeepCopy()
		with.Add(amount)
		if with.Cmp(most) > 0 {
			withheld.Requested[name], withheld.Held[name], withheld.Limited[name] = amount, held, most
		}
	}
	return withheld, len(withheld.Requested) > 0
}

// mostInDoubt is the larger of a share of the limit and a part of the amount that would be free, rounded up: to
// thousandths for CPUs, to whole ones for all else.
func mostInDoubt(name corev1.ResourceName, held, limit, used resource.Quantity, percent int64) resource.Quantity {
	scale := scaleOf(name)
	part := func(of resource.Quantity, numerator, denominator int64) resource.Quantity {
		product := new(inf.Dec).Mul(of.AsDec(), inf.NewDec(numerator, 0))
		rounded := new(inf.Dec).QuoRound(product, inf.NewDec(denominator, 0), scale, inf.RoundUp)
		return *resource.NewDecimalQuantity(*rounded, limit.Format)
	}
	free := limit.DeepCopy()
	free.Sub(used)
	free.Add(held)
	share, most := part(limit.DeepCopy(), percent, 100), part(free, 1, freePart)
	if most.Cmp(share) > 0 {
		return most
	}
	return share
}

// scaleOf is how many decimals a part of a resource is rounded to.
func scaleOf(name corev1.ResourceName) inf.Scale {
	if strings.HasSuffix(string(name), string(corev1.ResourceCPU)) {
		return 3
	}
	return 0
}
