// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"maps"
	"strings"

	"gopkg.in/inf.v0"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// Charge asks for a reservation within a quota's limits.
type Charge struct {
	Limits      Limits
	Reservation Reservation
	// Replaces is the workload of an object that replaces another one, which is going to end; zero if the object isn't known
	// to. Such an object may take surge.
	Replaces Surger
	// Knowledge is the caller's evidence that the quota covers the namespace.
	Knowledge Knowledge
	// MaxDoubtful is the amount that a namespace may hold if it has doubtful reservations, in percent of a limit: see
	// Withheld.
	MaxDoubtful int64
	// Admits: if the ledger can't be read or written, the request is admitted without a reservation.
	Admits bool
	// Unjudged: if nothing is enforced and the ledger can't show whether the charge fits, it is reserved all the same.
	Unjudged bool
}

// Knowledge is the caller's knowledge of namespaces at the time when it found
// that the quota covers the request's namespace.
type Knowledge struct {
	// Joined is the newest resourceVersion at which any namespace joined the quota, as far as the caller has seen, or
	// may have joined unseen. The ledger must have counted all namespaces that joined until then. Otherwise it lacks
	// their objects, and that matters to requests in every namespace.
	Joined uint64
	// All is the resourceVersion up to which the caller has seen all namespaces.
	All uint64
	// Seen is the resourceVersion up to which the caller has seen the request's namespace. It must
	// be at least that of the newest change of membership that the ledger has counted:
	// a caller that has seen less may take the namespace for another quota's.
	Seen uint64
	// Asks: the caller has waited for the ledger to count the namespaces that joined. They may have been counted long
	// ago, without a reason to write that.
	Asks bool
}

// Reserve judges a charge and, when it fits, reserves it. A charge that is
// reserved already changes nothing. So a charge whose write may have been lost
// can be judged again.
func (d *Draft) Reserve(charge Charge) Decision {
	d.surged = false
	decision, amounts := d.judge(charge)
	if IsGranted(decision) && len(amounts) > 0 {
		reservation := charge.Reservation
		reservation.Amounts = amounts
		d.put(reservation)
		d.changed = true
		if d.surged {
			d.noteSurge(charge.Replaces)
		}
		if d.state.isFor(charge.Limits.Basis) && charge.Knowledge.Joined <= d.state.Members() {
			d.state.Joined = max(d.state.Joined, charge.Knowledge.All) // the caller has seen that none joined since
		}
	}
	return decision
}

// Judge reports whether a charge would fit, and reserves nothing.
func (d *Draft) Judge(charge Charge) Decision {
	decision, _ := d.judge(charge)
	return decision
}

// judge returns the decision, and the amounts that a granted charge costs; nil if the ledger can't hold them.
func (d *Draft) judge(charge Charge) (Decision, corev1.ResourceList) {
	limits, reservation := d.state.Fence.bind(charge.Limits), charge.Reservation
	amounts := limits.Charged(reservation.Amounts)
	maps.Copy(amounts, charge.Limits.Charged(reservation.Amounts)) // a fence may not limit all of it
	if reason := d.unknown(limits, charge.Knowledge, amounts); reason != "" {
		return d.undecided(limits, charge, amounts, reason)
	}
	if _, known := d.state.Reservations[reservation.Key()]; !known && !d.hasRoomFor(reservation, limits) {
		full := Undecided{Quota: limits.Name, Reason: Full, Resources: sortedNames(amounts), Unenforced: limits.Advisory}
		if limits.Advisory {
			return unenforced(full), nil
		}
		return full, nil
	}
	added := addedTo(d.slotAmounts(reservation.slot()), amounts)
	if limits.Advisory {
		return Granted{Remarks: d.remarks(limits, amounts, added)}, amounts
	}
	if refused, ok := d.refuse(charge, limits, amounts, added); ok {
		return refused, nil
	}
	if withheld, ok := d.withhold(charge, limits, added); ok {
		return withheld, nil
	}
	return Granted{}, amounts
}

// undecided returns the decision on a charge that can't be judged for a reason.
func (d *Draft) undecided(limits Limits, charge Charge, amounts corev1.ResourceList, reason Reason) (Decision, corev1.ResourceList) {
	undecided := Undecided{Quota: limits.Name, Reason: reason, Resources: sortedNames(amounts), Unenforced: limits.Advisory}
	switch joined := charge.Knowledge.Joined; {
	case reason == StaleNamespaces:
		undecided.Members = d.state.Counted[Namespaces]
	case reason == NotJoined && charge.Knowledge.Asks && joined > d.state.Asked:
		d.state.Asked, d.changed = joined, true
	}
	if charge.Unjudged && limits.Advisory && d.admits(limits, reason) {
		return d.unjudged(limits, undecided, charge.Reservation, amounts)
	}
	return undecided, nil
}

// exceeded returns the resources of which more is wanted than the limits.
func exceeded(hard, added corev1.ResourceList, taken func(corev1.ResourceName) resource.Quantity) []corev1.ResourceName {
	var exceeded []corev1.ResourceName
	for name, more := range added {
		wanted := taken(name)
		wanted.Add(more)
		if limit, limited := hard[name]; limited && wanted.Cmp(limit) > 0 {
			exceeded = append(exceeded, name)
		}
	}
	return exceeded
}

// addedTo returns the amounts by which a slot grows. If the slot already holds more than the amounts, they add nothing.
func addedTo(held, amounts corev1.ResourceList) corev1.ResourceList {
	added := make(corev1.ResourceList, len(amounts))
	for name, amount := range amounts {
		more, before := amount.DeepCopy(), held[name]
		if more.Cmp(before) < 0 {
			more = before.DeepCopy()
		}
		more.Sub(before)
		added[name] = more
	}
	return added
}

// chargedOf returns the used and reserved amount of a resource, which counts
// against its limit.
func (d *Draft) chargedOf(name corev1.ResourceName) resource.Quantity {
	charged := d.state.Used[name].DeepCopy()
	charged.Add(d.index.reserved[name])
	return charged
}

// denied returns a denial for the sake of some resources.
func denied(
	quotaName string, requested, hard corev1.ResourceList, exceeded []corev1.ResourceName, used func(corev1.ResourceName) resource.Quantity,
) Denied {
	denied := Denied{
		Quota: quotaName, Requested: quota.Mask(requested, exceeded), Used: make(corev1.ResourceList, len(exceeded)),
		Limited: quota.Mask(hard, exceeded),
	}
	for _, name := range exceeded {
		denied.Used[name] = used(name)
	}
	return denied
}

// hasRoomFor reports whether the ledger can hold one more. While nothing is enforced, charges may fill half of it, so
// that an edit of the mode to Deny finds room for others.
func (d *Draft) hasRoomFor(reservation Reservation, limits Limits) bool {
	most, bytes := MaxReservations, MaxBytes
	if limits.Advisory {
		most, bytes = MaxReservations/2, MaxBytes/2
	}
	return len(d.state.Reservations)+len(d.state.Escrows)+len(d.state.Suspects) < most && d.index.bytes+reservation.Size() <= bytes
}

// unknown returns the Reason if the state knows too little to decide the charge;
// empty if it knows enough.
func (d *Draft) unknown(limits Limits, caller Knowledge, amounts corev1.ResourceList) Reason {
	switch {
	case d.state.Quota == limits.Quota && d.state.Generation > limits.Generation:
		return StaleLimits
	case d.state.Quota != limits.Quota || d.state.Digest != limits.Digest || d.state.Forgotten != 0:
		return NotCounted
	case !d.state.Sealed.IsZero():
		return Sealed
	case !d.counts(amounts):
		return NotCounted
	}
	switch {
	case caller.Seen < d.state.Counted[Namespaces]:
		return StaleNamespaces
	case caller.Joined > d.state.Members():
		return NotJoined
	default:
		return ""
	}
}

// counts reports whether all that a charge is judged by is counted.
func (d *Draft) counts(amounts corev1.ResourceList) bool {
	for name := range amounts {
		if _, counted := d.state.Used[name]; !counted {
			return false
		}
	}
	return true
}

// unenforced grants a charge in place of a refusal.
func unenforced(refusal Undecided) Granted {
	return Granted{Remarks: []Remark{{Quota: refusal.Quota, Refusal: refusal}}}
}

// admits reports whether a charge that can't be judged may be reserved. It may not if the ledger
// is another quota's, or if the caller has to find out first which limits or namespaces there are.
func (d *Draft) admits(limits Limits, reason Reason) bool {
	return d.state.Quota == limits.Quota && (reason == NotCounted || reason == NotJoined || reason == Sealed)
}

// unjudged reserves a charge that couldn't be judged, if the ledger has room for it. Resources that aren't counted,
// such as those that can't be listed, are left out: no count would ever settle their amounts.
func (d *Draft) unjudged(
	limits Limits, undecided Undecided, reservation Reservation, amounts corev1.ResourceList,
) (Decision, corev1.ResourceList) {
	if d.state.Digest == limits.Digest && d.state.Sealed.IsZero() {
		maps.DeleteFunc(amounts, func(name corev1.ResourceName, _ resource.Quantity) bool {
			_, counted := d.state.Used[name]
			return !counted
		})
	}
	if !d.hasRoomFor(reservation, limits) {
		amounts = nil
	}
	return unenforced(undecided), amounts
}

// remarks returns the remarks on a charge that is granted because nothing is enforced. Escrow of other replicas is not
// held against the charge, because it isn't used.
func (d *Draft) remarks(limits Limits, amounts, added corev1.ResourceList) []Remark {
	names := exceeded(limits.Hard, added, d.heldOf)
	if len(names) == 0 {
		return nil
	}
	refusal := denied(limits.Name, amounts, limits.Hard, names, d.heldOf)
	refusal.Provable = len(limits.Surge) > 0 && len(exceeded(limits.Most(), added, d.heldOf)) == 0
	return []Remark{{Quota: limits.Name, Refusal: refusal}}
}

// withhold reports whether a charge that fits is refused, because its namespace has doubtful reservations and holds too
// much. A charge that adds nothing to its slot is never refused so.
//
// Together with the charge, the namespace may hold its share of the limit, in percent, or a fifth of the amount that
// would be free without its reservations.
func (d *Draft) withhold(charge Charge, limits Limits, added corev1.ResourceList) (Withheld, bool) {
	if d.index.doubtful == 0 && len(d.state.Suspects) == 0 {
		return Withheld{}, false
	}
	if d.suspected == nil {
		d.suspected = d.gather()
	}
	suspected := d.suspected[charge.Reservation.Namespace]
	withheld := Withheld{
		Quota: charge.Limits.Name, Requested: corev1.ResourceList{}, Held: corev1.ResourceList{}, Limited: corev1.ResourceList{},
	}
	hard := limits.Hard
	if charge.replaces() {
		hard = limits.Most()
	}
	for name, amount := range added {
		limit, limited := hard[name]
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
		if left.Sign() < 0 { // it is going to be refused, unless it takes surge
			return charge.replaces()
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

// Room is the part of a quota's limits that a state leaves free.
type Room struct {
	// Hard is the most that may be used: the spec's limit, or a fence if that is
	// lower.
	Hard corev1.ResourceList
	// Left is Hard minus used and reserved amounts, for each resource that is counted. Amounts that replicas hold in
	// escrow are left, because replicas return them on request. Left is below zero if more is used than Hard.
	Left corev1.ResourceList
	// Surge is the room above Hard for objects that replace others.
	Surge corev1.ResourceList
}

// Room returns the room of the limits for a caller with this knowledge of namespaces. The Reason isn't empty if the
// room is unknown.
func (s State) Room(limits Limits, caller Knowledge) (Room, Reason) {
	if reason := (&Draft{state: s}).unknown(limits, caller, nil); reason != "" {
		return Room{}, reason
	}
	bound := s.Fence.bind(limits)
	held := s.held()
	counted := quota.Mask(bound.Hard, quota.ResourceNames(held))
	return Room{Hard: bound.Hard, Surge: bound.Surge, Left: quota.Subtract(counted, quota.Mask(held, quota.ResourceNames(counted)))}, ""
}

func (s State) held() corev1.ResourceList {
	draft := &Draft{state: s, index: s.Indexed().index}
	held := make(corev1.ResourceList, len(s.Used))
	for name := range s.Used {
		held[name] = draft.heldOf(name)
	}
	return held
}
