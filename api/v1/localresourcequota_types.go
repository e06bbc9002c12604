// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WaitingOwner is a workload that waits for room in a quota.
type WaitingOwner struct {
	// kind of the workload, such as ReplicaSet.
	Kind string `json:"kind"`

	// name of the workload.
	Name string `json:"name"`

	// since is when an object of it was refused first.
	Since metav1.Time `json:"since"`

	// short is what was missing when it was refused last.
	Short corev1.ResourceList `json:"short,omitempty"`
}

// LocalResourceQuotaStatus is a quota as one of its namespaces sees it. It
// names no other namespace and gives no other namespace's figures.
type LocalResourceQuotaStatus struct {
	// total holds the limits of the quota, and what all namespaces that share
	// it use of them together.
	// +optional
	Total corev1.ResourceQuotaStatus `json:"total,omitempty"`

	// reserved is what has been admitted in any of the quota's namespaces and
	// not yet been observed.
	// +optional
	Reserved corev1.ResourceList `json:"reserved,omitempty"`

	// available is what can still be created: hard less used and reserved,
	// and never below zero.
	// +optional
	Available corev1.ResourceList `json:"available,omitempty"`

	// surge is the room above the limit for pods that replace others, and how much of it is taken. Absent if the
	// quota has none.
	// +optional
	Surge *SurgeStatus `json:"surge,omitempty"`

	// levels tells of each resource how near to its limit all namespaces together
	// have come, as in the status of the ClusterResourceQuota.
	// +optional
	Levels map[corev1.ResourceName]Level `json:"levels,omitempty"`

	// mode is Warn or Audit if the quota admits requests that don't fit. It is absent if it refuses them.
	// +optional
	Mode EnforcementMode `json:"mode,omitempty"`

	// protected is true if the namespace is protected: what it uses is counted, and nothing is ever refused in it.
	// +optional
	Protected bool `json:"protected,omitempty"`

	// used is what this namespace uses.
	// +optional
	Used corev1.ResourceList `json:"used,omitempty"`

	// waiting are the workloads of this namespace that wait for room, because the quota
	// refused objects that their controllers created: those that have waited longest, at
	// most 20 of them. The condition Blocked says how many there are.
	// +optional
	// +listType=atomic
	Waiting []WaitingOwner `json:"waiting,omitempty"`

	// conditions of the view: Blocked.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// scopes of the quota: only objects that match each of them are limited.
	// +optional
	// +listType=atomic
	Scopes []corev1.ResourceQuotaScope `json:"scopes,omitempty"`

	// scopeSelector of the quota: only objects that match it are limited.
	// +optional
	ScopeSelector *corev1.ScopeSelector `json:"scopeSelector,omitempty"`

	// summary is used and hard of each resource of the whole quota, as in
	// "pods: 3/10, requests.cpu: 300m/2". For the columns of kubectl get.
	// +optional
	Summary string `json:"summary,omitempty"`

	// usedSummary is what this namespace uses, as in "pods: 1, requests.cpu:
	// 100m", without what it uses nothing of; or "none". For the columns of kubectl
	// get.
	// +optional
	UsedSummary string `json:"usedSummary,omitempty"`

	// reservedSummary is what is reserved, as in "pods: 1", or "none". For the
	// columns of kubectl get.
	// +optional
	ReservedSummary string `json:"reservedSummary,omitempty"`

	// scopeSummary is the scopes and the scopeSelector, as in "NotTerminating,
	// PriorityClass in (high,low)", or "none". For the columns of kubectl get.
	// +optional
	ScopeSummary string `json:"scopeSummary,omitempty"`
}

// LocalResourceQuota is the view that a namespace has of a
// ClusterResourceQuota of the same name that covers it. The operator writes
// it; it is for reading only.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=lrq,categories=all-quotas
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Used",type=string,JSONPath=`.status.summary`,description="Used and hard of each resource, over all namespaces that share the quota"
// +kubebuilder:printcolumn:name="Used Here",type=string,JSONPath=`.status.usedSummary`,description="What this namespace uses of it"
// +kubebuilder:printcolumn:name="Reserved",type=string,priority=1,JSONPath=`.status.reservedSummary`,description="What was admitted in any of the namespaces and not observed yet; it counts like usage"
// +kubebuilder:printcolumn:name="Scopes",type=string,priority=1,JSONPath=`.status.scopeSummary`,description="The quota limits only what is in each of these scopes"
type LocalResourceQuota struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status is the quota as this namespace sees it.
	// +optional
	// +structType=atomic
	Status LocalResourceQuotaStatus `json:"status,omitempty"`
}

// LocalResourceQuotaList is a list of LocalResourceQuotas.
//
// +kubebuilder:object:root=true
type LocalResourceQuotaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the views.
	Items []LocalResourceQuota `json:"items"`
}
