// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// WhyKind is the kind of a Why, where it is printed as an object.
const WhyKind = "Why"

// Cause is why an object doesn't come up.
type Cause string

// Causes, as programs read them.
const (
	// NotRefused: nothing is refused.
	NotRefused Cause = "NotRefused"
	// FitsNow: a quota refused it, and has room now.
	FitsNow Cause = "FitsNow"
	// QuotaShort: quotas leave too little.
	QuotaShort Cause = "QuotaShort"
	// QuotaRefused: a quota refuses it, whatever is left.
	QuotaRefused Cause = "QuotaRefused"
	// OtherRefused: something else than a quota refuses it.
	OtherRefused Cause = "OtherRefused"
	// NotCounted: what is left isn't known yet.
	NotCounted Cause = "NotCounted"
)

// Why says why an object doesn't come up, and what would make it.
type Why struct {
	metav1.TypeMeta `json:",inline"`
	Namespace       string     `json:"namespace"`
	Subject         ObjectName `json:"subject"`
	// Result is "fits", "does not fit" or "unknown".
	Result string `json:"result"`
	Cause  Cause  `json:"cause"`
	// Summary is the answer in a sentence.
	Summary string `json:"summary"`
	// Chain begins with the subject and goes on with what its controller made.
	Chain []WhyLink `json:"chain"`
	// Pods are those of the subject that exist and aren't ready.
	Pods []WhyPods `json:"pods"`
	// Quotas are those that are short, or that refused.
	Quotas  []WhyQuota   `json:"quotas"`
	Waiting []WhyWaiting `json:"waiting"`
	// Remedies are what would make it fit.
	Remedies []string `json:"remedies"`
	Notes    []string `json:"notes"`
}

// ObjectName names an object of the namespace.
type ObjectName struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// String is as people type it: "Deployment/web".
func (o ObjectName) String() string { return o.Kind + "/" + o.Name }

// WhyLink is an object on the way from the subject to its pods.
type WhyLink struct {
	ObjectName `json:",inline"`
	State      string `json:"state"`
	// Refusals that its controller met, the latest first.
	Refusals []WhyRefusal `json:"refusals,omitempty"`
	// Woken is when the operator told the controller last that there is room.
	Woken *metav1.Time `json:"woken,omitempty"`
}

// WhyRefusal is refused requests of one controller, by one quota and for one reason.
type WhyRefusal struct {
	// Reason is QuotaExceeded, RequestIncomplete, UsageUnknown, TooMuchInDoubt, NotCovered or RefusedElsewhere.
	Reason string `json:"reason"`
	// Quota is crq/NAME or quota/NAME; empty if no quota refused.
	Quota   string      `json:"quota,omitempty"`
	Message string      `json:"message"`
	First   metav1.Time `json:"first"`
	Last    metav1.Time `json:"last"`
	// Count is 0 if nobody counted.
	Count int32 `json:"count,omitempty"`
}

// WhyPods are pods in one state.
type WhyPods struct {
	State   string `json:"state"`
	Message string `json:"message,omitempty"`
	Count   int    `json:"count"`
	// Example is the name of one of them.
	Example string `json:"example"`
}

// WhyQuota is what the subject needs of a quota, and who holds it.
type WhyQuota struct {
	// Quota is crq/NAME or quota/NAME.
	Quota string `json:"quota"`
	// Unread: the user may not read the ClusterResourceQuota, so that other namespaces aren't known.
	Unread bool     `json:"unread,omitempty"`
	Rows   []WhyRow `json:"resources"`
}

// WhyRow is one resource of a quota. Amounts that nobody has counted are left out.
type WhyRow struct {
	Resource corev1.ResourceName `json:"resource"`
	// One is what the next object takes, and All what all missing ones need at the worst moment.
	One       resource.Quantity  `json:"one"`
	All       resource.Quantity  `json:"all"`
	Available *resource.Quantity `json:"available,omitempty"`
	Short     *resource.Quantity `json:"short,omitempty"`
	// Hard, Used and Here are the limit, what all namespaces use, and what this one does.
	Hard resource.Quantity  `json:"hard"`
	Used *resource.Quantity `json:"used,omitempty"`
	Here *resource.Quantity `json:"here,omitempty"`
	// Holders are the namespaces that use most of what is short, and More how many others use any.
	Holders []WhyHolder `json:"holders,omitempty"`
	More    int         `json:"more,omitempty"`
	// Largest are the pods and claims of this namespace that use most of what is short.
	Largest []WhyUser `json:"largest,omitempty"`
}

// IsShort reports whether too little is left.
func (r *WhyRow) IsShort() bool { return r.Short != nil && !r.Short.IsZero() }

// WhyHolder is what a namespace uses.
type WhyHolder struct {
	Namespace string            `json:"namespace"`
	Used      resource.Quantity `json:"used"`
}

// WhyUser is what an object uses.
type WhyUser struct {
	ObjectName `json:",inline"`
	Used       resource.Quantity `json:"used"`
}

// WhyWaiting is that the operator knows that a controller waits for room, and wakes it.
type WhyWaiting struct {
	ObjectName `json:",inline"`
	Quota      string              `json:"quota"`
	Since      metav1.Time         `json:"since"`
	Short      corev1.ResourceList `json:"short,omitempty"`
}

// IsShort reports whether the quota leaves too little of any resource.
func (q *WhyQuota) IsShort() bool {
	for i := range q.Rows {
		if q.Rows[i].IsShort() {
			return true
		}
	}
	return false
}

// Shared returns the name of the ClusterResourceQuota, if it is one.
func (q *WhyQuota) Shared() (string, bool) { return strings.CutPrefix(q.Quota, sharedPrefix) }

// HeldBy names the namespaces that use most of what is short.
func (q *WhyQuota) HeldBy(quota *quotav1.ClusterResourceQuota, most int) {
	for i := range q.Rows {
		row := &q.Rows[i]
		if !row.IsShort() {
			continue
		}
		parts := heaviest(quota, row.Resource)
		for _, one := range parts[:min(most, len(parts))] {
			row.Holders = append(row.Holders, WhyHolder{Namespace: one.namespace, Used: one.used})
		}
		row.More = max(0, len(parts)-most)
	}
}
