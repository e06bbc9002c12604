// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// Enforcement is a quota's response to requests that don't fit. The zero value refuses them.
type Enforcement struct {
	// Mode is never empty in a Definition.
	Mode quotav1.EnforcementMode
	// WhenUnavailable is the response while requests can't be decided; empty for the operator's default.
	WhenUnavailable quotav1.UnavailablePolicy
}

// EnforcementOf returns that of a spec.
func EnforcementOf(spec quotav1.ClusterResourceQuotaSpec) Enforcement {
	return Enforcement{
		Mode:            cmp.Or(spec.Enforcement.Mode, quotav1.EnforcementDeny),
		WhenUnavailable: spec.Enforcement.WhenUnavailable,
	}
}

// Refuses reports whether requests are refused. A mode that this release doesn't know refuses them: a quota never limits
// less than its spec says.
func (e Enforcement) Refuses() bool {
	return e.Mode != quotav1.EnforcementWarn && e.Mode != quotav1.EnforcementAudit
}

// AdmitsUnavailable reports whether requests are admitted while they can't be decided. byDefault is the operator's
// default.
func (e Enforcement) AdmitsUnavailable(byDefault bool) bool {
	switch {
	case !e.Refuses(), e.WhenUnavailable == quotav1.UnavailableAdmit:
		return true
	case e.WhenUnavailable == quotav1.UnavailableRefuse:
		return false
	default:
		return byDefault
	}
}

// Enforced returns the limits of a spec for which requests are refused. They must not be changed.
func Enforced(spec quotav1.ClusterResourceQuotaSpec) corev1.ResourceList {
	return EnforcedLimits(spec).Hard
}

// EnforcedLimits returns the same with surge.
func EnforcedLimits(spec quotav1.ClusterResourceQuotaSpec) ledger.Limits {
	if EnforcementOf(spec).Refuses() {
		return ledger.Limits{Hard: spec.Quota.Hard, Surge: spec.Surge.Hard}
	}
	return ledger.Limits{}
}
