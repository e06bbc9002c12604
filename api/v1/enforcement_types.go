// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
)

// Enforcement says what is done with requests that don't fit, whoever sends them.
type Enforcement struct {
	// mode says what is done with a request that doesn't fit, or doesn't say how much it
	// asks for: Deny, the default, refuses it; Warn admits it, and warns whoever sends it;
	// Audit admits it, and notes it in the API server's audit log. In each mode status.history
	// counts such requests, and what is admitted is counted as used.
	// +optional
	Mode EnforcementMode `json:"mode,omitempty"`

	// overrides give individual resources another mode.
	// +optional
	// +listType=map
	// +listMapKey=resource
	// +kubebuilder:validation:MaxItems=256
	Overrides []EnforcementOverride `json:"overrides,omitempty"`

	// warnAt is a percentage of a limit. Whoever sends a request that takes what is used and
	// reserved to so much or more of it is warned, and the request is admitted. Nobody is
	// warned so without it.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	WarnAt int32 `json:"warnAt,omitempty"`

	// whenUnavailable says what happens to requests while the operator can't decide, because
	// no replica answers, or the quota's ledger can't be read or written: Refuse or Admit.
	// It doesn't say what happens while a quota is counted and its ledger can be written, after
	// the ledger was lost, or if too many requests are in flight: requests for resources with
	// the mode Deny are refused then. What is admitted is counted as used. By default it is Refuse,
	// unless the operator runs with --failure-policy=Ignore; and a quota of which every resource has
	// the mode Warn or Audit never refuses.
	// +optional
	WhenUnavailable UnavailablePolicy `json:"whenUnavailable,omitempty"`
}

// EnforcementOverride gives one resource another mode.
type EnforcementOverride struct {
	// resource is a name in spec.quota.hard.
	Resource corev1.ResourceName `json:"resource"`

	// mode for this resource.
	Mode EnforcementMode `json:"mode"`
}

// EnforcementMode says what is done with a request that doesn't fit.
//
// +kubebuilder:validation:Enum=Deny;Warn;Audit
type EnforcementMode string

// The modes, from the default on. An empty one is Deny.
const (
	// EnforcementDeny: a request that doesn't fit is refused.
	EnforcementDeny EnforcementMode = "Deny"
	// EnforcementWarn: it is admitted, and whoever sends it is warned.
	EnforcementWarn EnforcementMode = "Warn"
	// EnforcementAudit: it is admitted, and noted in the API server's audit log.
	EnforcementAudit EnforcementMode = "Audit"
)

// UnavailablePolicy says what happens to requests while the operator can't decide.
//
// +kubebuilder:validation:Enum=Refuse;Admit
type UnavailablePolicy string

// The policies. An empty one is what the operator runs with.
const (
	// UnavailableRefuse: they are refused, if at least one quota of their namespace wants that.
	UnavailableRefuse UnavailablePolicy = "Refuse"
	// UnavailableAdmit: they are admitted, if all quotas of their namespace want that.
	UnavailableAdmit UnavailablePolicy = "Admit"
)

// Trial has limits that are judged and never enforced.
type Trial struct {
	// hard is the set of limits that are tried. A resource that spec.quota.hard doesn't limit is
	// counted, too.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	// +kubebuilder:validation:XValidation:rule="self.all(name, type(self[name]) == int ? self[name] >= 0 : !self[name].startsWith('-'))",message="must be greater than or equal to 0"
	Hard corev1.ResourceList `json:"hard,omitempty"`
}
