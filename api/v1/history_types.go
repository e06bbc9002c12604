// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TrialStatus is what the limits of spec.trial would have refused.
type TrialStatus struct {
	// since is when these limits were first judged.
	Since metav1.Time `json:"since"`

	// wouldRefuse has each resource for which a request would have been refused. After the first
	// such request the figures are upper bounds, because what would have been refused is used
	// all the same.
	// +optional
	// +listType=map
	// +listMapKey=resource
	WouldRefuse []TrialRefusals `json:"wouldRefuse,omitempty"`
}

// TrialRefusals are the requests that a limit of spec.trial would have refused.
type TrialRefusals struct {
	// resource is a name in spec.trial.hard.
	Resource corev1.ResourceName `json:"resource"`

	// requests is how many requests would have been refused, at most.
	Requests int64 `json:"requests"`

	// largestShortfall is the most by which one of them went beyond the limit.
	LargestShortfall resource.Quantity `json:"largestShortfall"`

	// last is when the last one was sent.
	Last metav1.Time `json:"last"`
}

// ResourceHistory is what one resource of the quota has seen. A day is one in UTC; a week is
// the last seven of them, and a month the last thirty, today included.
type ResourceHistory struct {
	// resource is a name in spec.quota.hard or spec.trial.hard.
	Resource corev1.ResourceName `json:"resource"`

	// peak is the most that was used and reserved at once, as the ledger says. If replicas grant from escrow, it may lack
	// objects that were gone before the leader counted them, and have objects that had gone a moment before.
	Peak PeakHistory `json:"peak"`

	// refused are the requests that didn't fit. With the modes Warn and Audit they were admitted.
	// Absent if there were none in the month.
	// +optional
	Refused *RefusalHistory `json:"refused,omitempty"`

	// trend is the peak of each of ten periods of three days, the oldest first, in eighths of the limit,
	// rounded up: 0 to 8, + for above the limit, and - for a period of which nothing is known.
	// Absent if the entry would be too long with it.
	// +optional
	Trend string `json:"trend,omitempty"`
}

// PeakHistory is the most that was used and reserved at once.
type PeakHistory struct {
	// day is the most of today.
	Day resource.Quantity `json:"day"`

	// week is the most of the last seven days.
	Week resource.Quantity `json:"week"`

	// month is the most of the last thirty days.
	Month resource.Quantity `json:"month"`

	// at is when that of the month was reached first.
	At metav1.Time `json:"at"`
}

// RefusalHistory are the requests that didn't fit.
type RefusalHistory struct {
	// day is how many there were today.
	Day int64 `json:"day"`

	// week is how many there were in the last seven days.
	Week int64 `json:"week"`

	// month is how many there were in the last thirty days.
	Month int64 `json:"month"`

	// shortfall is how much more than the limit, as it is now, one of them would have taken at
	// most. It is negative if all of them would fit now.
	Shortfall resource.Quantity `json:"shortfall"`
}

// MostRefused is the workload of which most requests didn't fit in the last thirty days.
type MostRefused struct {
	// namespace of the workload.
	Namespace string `json:"namespace"`

	// kind of the workload, such as ReplicaSet; empty with name if nobody controls the objects.
	// +optional
	Kind string `json:"kind,omitempty"`

	// name of the workload.
	// +optional
	Name string `json:"name,omitempty"`

	// requests is how many didn't fit.
	Requests int64 `json:"requests"`
}

// SpecChange is one change of what the quota limits.
type SpecChange struct {
	// at is when it was changed.
	At metav1.Time `json:"at"`

	// by is the user who changed it.
	By string `json:"by"`

	// generation of the spec that has it.
	Generation int64 `json:"generation"`

	// resource whose limit or mode was changed; empty if something else was.
	// +optional
	Resource corev1.ResourceName `json:"resource,omitempty"`

	// field that was changed: hard, mode, trial, selector or whenUnavailable.
	Field string `json:"field"`

	// from is its value before; empty if there was none.
	// +optional
	From string `json:"from,omitempty"`

	// to is its value since then; empty if there is none.
	// +optional
	To string `json:"to,omitempty"`
}
