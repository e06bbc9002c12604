// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// unenforced grants what would have been refused.
func unenforced(refusal Undecided) Granted {
	return Granted{Remarks: []Remark{{Quota: refusal.Quota, Refusal: refusal}}}
}

// admits reports whether a charge that can't be judged may be reserved. It may not if the ledger
// is another quota's, or if the caller has to find out first which limits or namespaces there are.
func (d *Draft) admits(limits Limits, reason Reason) bool {
	return d.state.Quota == limits.Quota && (reason == NotCounted || reason == NotJoined || reason == Sealed)
}

// unjudged reserves what nobody could judge, if the ledger has room for it. Of a resource that isn't counted, such as one
// that can't be listed, nothing is reserved: no count would ever settle it.
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

// remarks returns what there is to say of a charge that is granted because nothing is enforced. What replicas hold in
// escrow is not held against it, because nobody uses it.
func (d *Draft) remarks(limits Limits, amounts, added corev1.ResourceList) []Remark {
	names := exceeded(limits.Hard, added, d.heldOf)
	if len(names) == 0 {
		return nil
	}
	return []Remark{{Quota: limits.Name, Refusal: denied(limits.Name, amounts, limits.Hard, names, d.heldOf)}}
}
