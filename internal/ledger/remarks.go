// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

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
	return []Remark{{Quota: limits.Name, Refusal: denied(limits.Name, amounts, limits.Hard, names, d.heldOf)}}
}
