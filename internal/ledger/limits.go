// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// Basis identifies the quota and the spec that a count was made for.
type Basis struct {
	// Quota is the UID of the ClusterResourceQuota.
	Quota types.UID
	// Generation of its spec.
	Generation int64
	// Digest of the parts of the spec that decide which objects count. While it
	// is the same, a count for an older generation still holds.
	Digest string
}

// Limits is a quota's spec as enforcement sees it.
type Limits struct {
	Basis
	// Name of the quota.
	Name string
	// Hard is the most that may be used, for each limited resource.
	Hard corev1.ResourceList
	// Surge is the room above Hard for charges whose objects replace others. A resource that is missing has none.
	Surge corev1.ResourceList
	// Advisory: nothing is refused. A charge that doesn't fit is reserved, and remarked on.
	Advisory bool
}

// Most returns the most that may be used of each limited resource if objects replace others. It must not be changed.
func (l Limits) Most() corev1.ResourceList { return most(l.Hard, l.Surge) }

func most(hard, surge corev1.ResourceList) corev1.ResourceList {
	if len(surge) == 0 {
		return hard
	}
	return quota.Add(hard, quota.Mask(surge, quota.ResourceNames(hard)))
}

// Of returns the limits of some resources.
func (l Limits) Of(names []corev1.ResourceName) Limits {
	l.Hard = quota.Mask(l.Hard, names)
	if l.Surge != nil {
		l.Surge = quota.Mask(l.Surge, names)
	}
	return l
}

// Charged returns the amounts that the limits are about.
func (l Limits) Charged(amounts corev1.ResourceList) corev1.ResourceList {
	charged := make(corev1.ResourceList, len(amounts))
	for name, amount := range amounts {
		if _, limited := l.Hard[name]; limited {
			charged[name] = amount
		}
	}
	return charged
}
