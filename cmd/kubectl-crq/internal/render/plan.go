// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// PlanKind is the kind of a Plan, where it is printed as an object.
const PlanKind = "Plan"

// PlanResult is whether anything would be above its limit.
type PlanResult string

// Results, as programs read them.
const (
	PlanFits    PlanResult = "within limits"
	PlanAbove   PlanResult = "above limits"
	PlanUnknown PlanResult = "unknown"
)

// PlanChange is what becomes of a quota.
type PlanChange string

// Changes of a quota, as programs read them.
const (
	PlanNew       PlanChange = "new"
	PlanChanged   PlanChange = "changed"
	PlanUnchanged PlanChange = "unchanged"
)

// Plan says what quotas would do if they were applied now.
type Plan struct {
	metav1.TypeMeta `json:",inline"`
	Result          PlanResult  `json:"result"`
	Quotas          []PlanQuota `json:"quotas"`
	Webhook         PlanWebhook `json:"webhook"`
	// Overlaps are pairs of quotas that limit the same resource in the same namespace.
	Overlaps []PlanOverlap `json:"overlaps"`
	// Sums are all limits together, against what nodes have.
	Sums []PlanSum `json:"sums"`
	// Nodes is how many nodes there are; absent if they may not be read.
	Nodes *int     `json:"nodes,omitempty"`
	Notes []string `json:"notes"`
}

// PlanQuota is one quota.
type PlanQuota struct {
	Quota  string     `json:"quota"`
	Change PlanChange `json:"change"`
	// Selector and Scopes are those that are planned, as people read them.
	Selector string `json:"selector"`
	Scopes   string `json:"scopes,omitempty"`
	// NamespacesKnown is false if nobody could read which namespaces there are.
	NamespacesKnown bool     `json:"namespacesKnown"`
	Namespaces      []string `json:"namespaces"`
	Joining         []string `json:"joining"`
	Leaving         []string `json:"leaving"`
	// WhenUnavailable is what happens to requests while the operator can't decide.
	WhenUnavailable quotav1.UnavailablePolicy `json:"whenUnavailable"`
	Resources       []PlanResource            `json:"resources"`
	// Remarks say in words what the limits do.
	Remarks []string `json:"remarks"`
}

// UsedFrom is how the used amount is known.
type UsedFrom string

// Sources of a used amount, as programs read them.
const (
	// FromStatus: the quota has counted it already.
	FromStatus UsedFrom = "status"
	// FromCount: it was counted for the plan, from the objects that exist.
	FromCount UsedFrom = "count"
	// FromOthers: it is the sum of what other quotas counted in each namespace.
	FromOthers UsedFrom = "other quotas"
	// FromNowhere: it isn't known until the operator has counted it.
	FromNowhere UsedFrom = "unknown"
)

// PlanResource is one limit. Amounts that aren't known are left out.
type PlanResource struct {
	Resource corev1.ResourceName     `json:"resource"`
	Mode     quotav1.EnforcementMode `json:"mode"`
	// Was is the limit that there is now; absent if there is none.
	Was  *resource.Quantity `json:"was,omitempty"`
	Hard resource.Quantity  `json:"hard"`
	// Used includes what is reserved.
	Used     *resource.Quantity `json:"used,omitempty"`
	UsedFrom UsedFrom           `json:"usedFrom"`
	// Above is how much of what is used is above the limit.
	Above *resource.Quantity `json:"above,omitempty"`
	// Peak is that of the last thirty days.
	Peak   *resource.Quantity `json:"peak,omitempty"`
	PeakAt *metav1.Time       `json:"peakAt,omitempty"`
}

// PlanWebhook is how the entries of the webhook configuration change.
type PlanWebhook struct {
	// EntriesNow and EntriesThen are how many enforce quotas.
	EntriesNow  int `json:"entriesNow"`
	EntriesThen int `json:"entriesThen"`
	// Changes are of the namespaces that exist.
	Changes []PlanAsked `json:"changes"`
}

// PlanAsked is what the API server asks the operator about in some namespaces, or no longer.
type PlanAsked struct {
	Namespaces []string `json:"namespaces"`
	Newly      []string `json:"newly,omitempty"`
	NoLonger   []string `json:"noLonger,omitempty"`
	// FailurePolicy is Fail or Ignore; empty if nothing is asked any more.
	FailurePolicy string `json:"failurePolicy,omitempty"`
	// Was is the failure policy that there is now; empty if nothing is asked now.
	Was string `json:"was,omitempty"`
}

// PlanOverlap is what two quotas both limit.
type PlanOverlap struct {
	Quota      string                `json:"quota"`
	With       string                `json:"with"`
	Namespaces []string              `json:"namespaces"`
	Resources  []corev1.ResourceName `json:"resources"`
	// Scoped: one of them limits only the objects of its scopes, so there may be none that both limit.
	Scoped bool `json:"scoped,omitempty"`
}

// PlanSum is the sum of the limits of all quotas.
type PlanSum struct {
	Resource corev1.ResourceName `json:"resource"`
	Now      resource.Quantity   `json:"now"`
	Then     resource.Quantity   `json:"then"`
	// Allocatable is what all nodes have; absent if they may not be read.
	Allocatable *resource.Quantity `json:"allocatable,omitempty"`
}
