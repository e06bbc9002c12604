// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// Enforcement says what is done with requests that don't fit, whoever sends them.
type Enforcement struct {
	// mode says what is done with a request that doesn't fit, or doesn't say how much it
	// asks for: Deny, the default, refuses it; Warn admits it, and warns whoever sends it;
	// Audit admits it, and notes it in the API server's audit log. In each mode what is admitted
	// is counted as used.
	// +optional
	Mode EnforcementMode `json:"mode,omitempty"`

	// whenUnavailable says what happens to requests while the operator can't decide, because
	// no replica answers, or the quota's ledger can't be read or written: Refuse or Admit.
	// It doesn't say what happens while a quota is counted and its ledger can be written, after
	// the ledger was lost, or if too many requests are in flight: requests are refused then if
	// the mode is Deny. What is admitted is counted as used. By default it is Refuse, unless the
	// operator runs with --failure-policy=Ignore; and with the mode Warn or Audit nothing is ever
	// refused.
	// +optional
	WhenUnavailable UnavailablePolicy `json:"whenUnavailable,omitempty"`
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
