// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Basis identifies what a count was made for.
type Basis struct {
	// Quota is the UID of the ClusterResourceQuota.
	Quota types.UID
	// Generation of its spec.
	Generation int64
	// Digest of the parts of the spec that decide what counts. While it is
	// the same, a count for an older generation still holds.
	Digest string
}

// Limits is a quota's spec as enforcement sees it.
type Limits struct {
	Basis
	// Name of the quota.
	Name string
	// Hard is the most that may be used, for each limited resource.
	Hard corev1.ResourceList
	// Advisory are the resources of Hard for which nothing is refused: a charge that doesn't fit is
	// reserved, and remarked on.
	Advisory map[corev1.ResourceName]bool
	// Trial are limits that are judged beside Hard and refuse nothing. Resources that only Trial has
	// are charged, too.
	Trial corev1.ResourceList
	// WarnAt is the percentage of a limit from which on charges are remarked on; zero for never.
	WarnAt int64
}

// Charged returns the amounts that the limits are about.
func (l Limits) Charged(amounts corev1.ResourceList) corev1.ResourceList {
	charged := make(corev1.ResourceList, len(amounts))
	for name, amount := range amounts {
		if _, limited := l.Hard[name]; limited {
			charged[name] = amount
		} else if _, tried := l.Trial[name]; tried {
			charged[name] = amount
		}
	}
	return charged
}

// Enforces reports whether a charge may be refused for the sake of a resource.
func (l Limits) Enforces(name corev1.ResourceName) bool {
	_, limited := l.Hard[name]
	return limited && !l.Advisory[name]
}

// EnforcesAny reports whether a charge of these amounts may be refused.
func (l Limits) EnforcesAny(amounts corev1.ResourceList) bool {
	for name := range amounts {
		if l.Enforces(name) {
			return true
		}
	}
	return false
}
