// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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
	// Advisory: nothing is refused. A charge that doesn't fit is reserved, and remarked on.
	Advisory bool
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
