// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// Decision is the answer to a charge: Granted, Denied, Withheld or Undecided.
// Only a Granted charge may be admitted.
type Decision interface{ decision() }

// Granted says that the charge is reserved in the draft.
type Granted struct {
	// Remarks are the remarks of quotas on the grant. Most charges have none.
	Remarks []Remark
}

// Remark is a quota's comment on a charge that it doesn't refuse.
type Remark struct {
	// Quota is the quota's name.
	Quota string
	// Refusal is the answer that enforcement would have given.
	Refusal Decision
	// Unchecked: the charge couldn't be judged, and wasn't reserved.
	Unchecked bool
}

// Denied says that the charge doesn't fit. The lists hold only exceeded
// resources.
type Denied struct {
	// Quota is the quota's name.
	Quota string
	// Requested is the charge.
	Requested corev1.ResourceList
	// Used is the used and reserved amount without the charge.
	Used corev1.ResourceList
	// Limited is the limit.
	Limited corev1.ResourceList
}

// Resources returns the exceeded resources, sorted.
func (d Denied) Resources() []corev1.ResourceName { return sortedNames(d.Requested) }

// Withheld says that the charge fits, and that its namespace, some of whose requests seem to have
// failed after they were admitted, holds too much for requests whose objects have not appeared. The
// lists hold only the resources of which that is so.
type Withheld struct {
	// Quota is the quota's name.
	Quota string
	// Requested is the amount that the charge would add.
	Requested corev1.ResourceList
	// Held is the amount that the namespace holds so.
	Held corev1.ResourceList
	// Limited is the amount that it may hold so, together with the charge.
	Limited corev1.ResourceList
}

// Undecided says that this state can't tell.
type Undecided struct {
	// Quota is the quota's name.
	Quota string
	// Reason names the missing knowledge.
	Reason Reason
	// Resources are the resources of the charge, sorted.
	Resources []corev1.ResourceName
	// Members is, with StaleNamespaces, the resourceVersion of a namespace's change
	// that the caller has to know of.
	Members uint64
	// Unenforced: the charge can't be refused by the limits that bind it, which a fence may have changed.
	Unenforced bool
	// Detail says more, for people; empty for most reasons.
	Detail string
}

// Reason says why a charge is Undecided.
type Reason string

const (
	// NotCounted: usage has not been counted yet for this spec of the quota.
	NotCounted Reason = "NotCounted"
	// StaleLimits: the ledger knows a newer spec of the quota than the charge.
	StaleLimits Reason = "StaleLimits"
	// Full: more charges are in flight than a ledger may hold.
	Full Reason = "Full"
	// Unavailable: the ledger can't be read or written.
	Unavailable Reason = "Unavailable"
	// Sealed: the ledger may not hold all that is in flight.
	Sealed Reason = "Sealed"
	// NotJoined: the ledger may lack a namespace that the caller has seen join.
	NotJoined Reason = "NotJoined"
	// StaleNamespaces: the ledger knows of a namespace that joined or left, and the
	// caller has not seen that.
	StaleNamespaces Reason = "StaleNamespaces"
	// InvalidSpec: this release can't compile the quota's spec.
	InvalidSpec Reason = "InvalidSpec"
)

// IsGranted reports whether a decision is Granted; none isn't.
func IsGranted(decision Decision) bool {
	_, granted := decision.(Granted)
	return granted
}

func (Granted) decision()   {}
func (Denied) decision()    {}
func (Withheld) decision()  {}
func (Undecided) decision() {}

// Charge asks for a reservation within a quota's limits.
type Charge struct {
	Limits      Limits
	Reservation Reservation
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
	decision, amounts := d.judge(charge)
	if IsGranted(decision) && len(amounts) > 0 {
		reservation := charge.Reservation
		reservation.Amounts = amounts
		d.put(reservation)
		d.changed = true
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
	if names := exceeded(limits.Hard, added, d.chargedOf); len(names) > 0 {
		return denied(limits.Name, amounts, limits.Hard, names, d.chargedOf), nil
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
	return len(d.state.Reservations) < most && d.index.bytes+reservation.size() <= bytes
}

// unknown returns the Reason if the state knows too little to decide the charge;
// empty if it knows enough.
func (d *Draft) unknown(limits Limits, caller Knowledge, amounts corev1.ResourceList) Reason {
	switch {
	case d.state.Quota == limits.Quota && d.state.Generation > limits.Generation:
		return StaleLimits
	case d.state.Quota != limits.Quota || d.state.Digest != limits.Digest || d.state.Forgotten() != 0:
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

// Release gives a charge back because its request is known to have failed.
func (d *Draft) Release(key Key) {
	d.end(key, &d.ends.Released)
}

// Drop removes an expired reservation that a live look found without an object. A
// reservation that was renewed since that look stays.
func (d *Draft) Drop(expired Reservation) {
	if held, known := d.state.Reservations[expired.Key()]; known && held.Life() == expired.Life() {
		d.end(expired.Key(), &d.ends.Expired)
	}
}
