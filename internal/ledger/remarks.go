// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// unenforced grants what would have been refused.
func unenforced(refusal Undecided) Granted {
	return Granted{Remarks: []Remark{{Quota: refusal.Quota, Kind: Unenforced, Refusal: refusal}}}
}

// admits reports whether a charge that can't be judged may be reserved. It may not if the ledger
// is another quota's, or if the caller has to find out first which limits or namespaces there are.
func (d *Draft) admits(limits Limits, reason Reason) bool {
	return d.state.Quota == limits.Quota && (reason == NotCounted || reason == NotJoined || reason == Sealed)
}

// unjudged reserves what nobody could judge, if the ledger has room for it.
func (d *Draft) unjudged(
	limits Limits, undecided Undecided, reservation Reservation, amounts corev1.ResourceList,
) (Decision, corev1.ResourceList) {
	if d.state.Digest == limits.Digest && d.state.Sealed.IsZero() {
		amounts = d.countable(limits, amounts)
	}
	if !d.hasRoomFor(reservation, false) {
		amounts = nil
	}
	return unenforced(undecided), amounts
}

// countable returns the amounts without those that aren't enforced and aren't counted, such as of a resource that can't
// be listed: no count would ever settle them. It is nil if nothing is left.
func (d *Draft) countable(limits Limits, amounts corev1.ResourceList) corev1.ResourceList {
	for name := range amounts {
		if _, counted := d.state.Used[name]; !counted && !limits.Enforces(name) {
			delete(amounts, name)
		}
	}
	if len(amounts) == 0 {
		return nil
	}
	return amounts
}

// remarks returns what there is to say of a charge that is granted. What replicas hold in escrow is not held
// against it, because nobody uses it.
func (d *Draft) remarks(limits Limits, amounts, added corev1.ResourceList) []Remark {
	if len(limits.Advisory) == 0 && len(limits.Trial) == 0 && limits.WarnAt == 0 {
		return nil
	}
	exceeded, tried, near := d.notable(limits, added)
	if len(exceeded) > 0 {
		near = nil
	}
	var remarks []Remark
	remark := func(kind RemarkKind, hard corev1.ResourceList, names []corev1.ResourceName) {
		if len(names) > 0 {
			remarks = append(remarks, Remark{Quota: limits.Name, Kind: kind, Refusal: denied(limits.Name, amounts, hard, names, d.heldOf)})
		}
	}
	remark(Unenforced, limits.Hard, exceeded)
	remark(Tried, limits.Trial, tried)
	remark(Near, limits.Hard, near)
	return remarks
}

// notable returns the resources of which more is wanted than a limit or a trial, and those that come near a limit.
func (d *Draft) notable(limits Limits, added corev1.ResourceList) (exceeded, tried, near []corev1.ResourceName) {
	for name, more := range added {
		wanted := d.heldOf(name)
		wanted.Add(more)
		limit, limited := limits.Hard[name]
		switch {
		case !limited:
		case wanted.Cmp(limit) > 0:
			exceeded = append(exceeded, name)
		case limits.WarnAt > 0 && more.Sign() > 0 && isPercent(wanted, limit, limits.WarnAt):
			near = append(near, name)
		}
		if limit, tries := limits.Trial[name]; tries && wanted.Cmp(limit) > 0 {
			tried = append(tried, name)
		}
	}
	return exceeded, tried, near
}

// isPercent reports whether an amount is at least so many percent of a limit.
func isPercent(amount, limit resource.Quantity, percent int64) bool {
	hundredfold, part := amount.DeepCopy(), limit.DeepCopy()
	hundredfold.Mul(100)
	part.Mul(percent)
	return hundredfold.Cmp(part) >= 0
}
