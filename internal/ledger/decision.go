// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import corev1 "k8s.io/api/core/v1"

// Decision is the answer to a charge: Granted, Denied, Withheld or Undecided.
// Only a Granted charge may be admitted.
type Decision interface{ decision() }

// Granted says that the charge is reserved in the draft.
type Granted struct {
	// Remarks are the remarks of quotas on the grant. Most charges have none.
	Remarks []Remark
}

// Remark is a quota's comment on a charge that it doesn't refuse.
type Remark struct {
	// Quota is the quota's name.
	Quota string
	// Refusal is the answer that enforcement would have given.
	Refusal Decision
	// Unchecked: the charge couldn't be judged, and wasn't reserved.
	Unchecked bool
}

// Denied says that the charge doesn't fit. The lists hold only exceeded
// resources.
type Denied struct {
	// Quota is the quota's name.
	Quota string
	// Requested is the charge.
	Requested corev1.ResourceList
	// Used is the used and reserved amount without the charge.
	Used corev1.ResourceList
	// Limited is the limit.
	Limited corev1.ResourceList
	// Provable: there is surge of a resource that doesn't fit, so it matters whether the object replaces another one. In a Remark,
	// it would fit then.
	Provable bool
	// Replaces: it is known to replace one, and Surge is the room above the limit that it doesn't fit in either.
	Replaces bool
	Surge    corev1.ResourceList
}

// Resources returns the exceeded resources, sorted.
func (d Denied) Resources() []corev1.ResourceName { return sortedNames(d.Requested) }

// Withheld says that the charge fits, and that its namespace, some of whose requests seem to have
// failed after they were admitted, holds too much for requests whose objects have not appeared. The
// lists hold only the resources of which that is so.
type Withheld struct {
	// Quota is the quota's name.
	Quota string
	// Requested is the amount that the charge would add.
	Requested corev1.ResourceList
	// Held is the amount that the namespace holds so.
	Held corev1.ResourceList
	// Limited is the amount that it may hold so, together with the charge.
	Limited corev1.ResourceList
}

// Undecided says that this state can't tell.
type Undecided struct {
	// Quota is the quota's name.
	Quota string
	// Reason names the missing knowledge.
	Reason Reason
	// Resources are the resources of the charge, sorted.
	Resources []corev1.ResourceName
	// Members is, with StaleNamespaces, the resourceVersion of a namespace's change
	// that the caller has to know of.
	Members uint64
	// Unenforced: the charge can't be refused by the limits that bind it, which a fence may have changed.
	Unenforced bool
	// Detail says more, for people; empty for most reasons.
	Detail string
}

// Reason says why a charge is Undecided.
type Reason string

const (
	// NotCounted: usage has not been counted yet for this spec of the quota.
	NotCounted Reason = "NotCounted"
	// StaleLimits: the ledger knows a newer spec of the quota than the charge.
	StaleLimits Reason = "StaleLimits"
	// Full: more charges are in flight than a ledger may hold.
	Full Reason = "Full"
	// Unavailable: the ledger can't be read or written.
	Unavailable Reason = "Unavailable"
	// Sealed: the ledger may not hold all that is in flight.
	Sealed Reason = "Sealed"
	// NotJoined: the ledger may lack a namespace that the caller has seen join.
	NotJoined Reason = "NotJoined"
	// StaleNamespaces: the ledger knows of a namespace that joined or left, and the
	// caller has not seen that.
	StaleNamespaces Reason = "StaleNamespaces"
	// InvalidSpec: this release can't compile the quota's spec.
	InvalidSpec Reason = "InvalidSpec"
)

// IsGranted reports whether a decision is Granted; none isn't.
func IsGranted(decision Decision) bool {
	_, granted := decision.(Granted)
	return granted
}

func (Granted) decision()   {}
func (Denied) decision()    {}
func (Withheld) decision()  {}
func (Undecided) decision() {}
