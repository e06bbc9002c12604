// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	quota "k8s.io/apiserver/pkg/quota/v1"
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

// remarks returns what there is to say of a charge that is granted. What replicas hold in escrow is not held
// against it, because nobody uses it.
func (d *Draft) remarks(limits Limits, amounts, added corev1.ResourceList) []Remark {
	if len(limits.Advisory) == 0 && len(limits.Trial) == 0 && limits.WarnAt == 0 {
		return nil
	}
	names := quota.ResourceNames(amounts)
	held := quota.Mask(d.Held(), names)
	wanted := quota.Add(held, added)
	var remarks []Remark
	remark := func(kind RemarkKind, hard corev1.ResourceList, exceeded []corev1.ResourceName) {
		if len(exceeded) > 0 {
			remarks = append(remarks, Remark{Quota: limits.Name, Kind: kind, Refusal: denied(limits.Name, amounts, held, hard, exceeded)})
		}
	}
	_, exceeded := quota.LessThanOrEqual(wanted, limits.Hard)
	remark(Unenforced, limits.Hard, exceeded)
	_, tried := quota.LessThanOrEqual(wanted, limits.Trial)
	remark(Tried, limits.Trial, tried)
	if limits.WarnAt > 0 && len(exceeded) == 0 {
		remark(Near, limits.Hard, near(wanted, added, limits))
	}
	return remarks
}

// near returns the resources of which something is added, and so much is wanted that people are told.
func near(wanted, added corev1.ResourceList, limits Limits) []corev1.ResourceName {
	var near []corev1.ResourceName
	for name, amount := range added {
		limit, limited := limits.Hard[name]
		if limited && amount.Sign() > 0 && isPercent(wanted[name], limit, limits.WarnAt) {
			near = append(near, name)
		}
	}
	return near
}

// isPercent reports whether an amount is at least so many percent of a limit.
func isPercent(amount, limit resource.Quantity, percent int64) bool {
	hundredfold, part := amount.DeepCopy(), limit.DeepCopy()
	hundredfold.Mul(100)
	part.Mul(percent)
	return hundredfold.Cmp(part) >= 0
}
