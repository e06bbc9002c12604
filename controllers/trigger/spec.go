// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// SpecChanged lets pass the updates after which a quota's spec is another one, or the quota is: an update may
// stand for a deletion and a creation that no watch has shown.
func SpecChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(update event.UpdateEvent) bool {
		before, after := update.ObjectOld, update.ObjectNew
		return before.GetGeneration() != after.GetGeneration() || before.GetUID() != after.GetUID()
	}}
}

// SpecOrLedgerChanged also lets pass those after which the status names another ledger.
func SpecOrLedgerChanged() predicate.Predicate {
	return predicate.Or(SpecChanged(), predicate.Funcs{UpdateFunc: func(update event.UpdateEvent) bool {
		before, isBefore := update.ObjectOld.(*quotav1.ClusterResourceQuota)
		after, isAfter := update.ObjectNew.(*quotav1.ClusterResourceQuota)
		return isBefore && isAfter && before.Status.Ledger != after.Status.Ledger
	}})
}
