// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package wake

import (
	"slices"

	quota "k8s.io/apiserver/pkg/quota/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/waiting"
)

// freeOf returns the room that a quota has: the free amount by the count, as its status shows it, and by the ledger's
// use, because nothing is granted before a settle. Each reservation is subtracted once, also if it was granted from
// escrow, counted, and recorded only then: the ledger has it twice until it is settled. If some objects went while
// others came, that may be more room than the next settle makes: their owners are woken a moment early, and their
// requests wait for it.
//
// It returns false while the ledger grants nothing, or isn't of this count. Of a resource that isn't counted there is none.
func freeOf(object *quotav1.ClusterResourceQuota, count *counting.Count, state ledger.State) (waiting.Free, bool) {
	read := counting.BalanceOf(count, object.Name, object.UID, state)
	isOpen := state.Quota == object.UID && state.Sealed.IsZero() && state.Digest == read.Target.Digest
	if read.Selection == 0 || !isOpen {
		return waiting.Free{}, false
	}
	limits := definition.EnforcedLimits(object.Spec) // objects are refused for nothing else
	hard, most := limits.Hard, limits.Most()
	used := quota.Max(quota.Mask(read.Used, read.Complete), state.Used)
	charged := quota.Mask(quota.Add(used, read.Reserved), quota.ResourceNames(hard))
	for name, limit := range most {
		if !slices.Contains(read.Complete, name) {
			charged[name] = limit
		}
	}
	return waiting.Free{Hard: hard, Surge: limits.Surge, Charged: charged, Limits: func(namespace string) bool {
		_, selected := read.Slices[namespace]
		return selected
	}}, true
}
