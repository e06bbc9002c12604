// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Types of the conditions of a ClusterResourceQuota.
const (
	// ConditionReady is true once everything that the quota limits has been
	// counted for the current generation of its spec.
	ConditionReady = "Ready"
	// ConditionEnforced is true while the API server is proved to ask about every
	// resource that the quota limits, in every namespace that it selects, so that no
	// request passes it by. What was admitted before is counted, never removed.
	ConditionEnforced = "Enforced"
	// ConditionExceeded is true while more of a resource is used than the quota
	// allows: its limit was lowered, or more was there before the quota.
	ConditionExceeded = "Exceeded"
	// ConditionProtectedSelected is true while the quota selects namespaces that
	// are never limited, such as kube-system. What they use counts all the same.
	ConditionProtectedSelected = "ProtectedSelected"
	// ConditionResourceUnavailable is true while the quota names a resource
	// that can't be counted, most often because the cluster doesn't serve it.
	// The quota's other resources are not affected.
	ConditionResourceUnavailable = "ResourceUnavailable"
	// ConditionReconciling is there, and true, as long as the spec isn't fully in force and the operator works on that.
	// Tools that wait for an object, such as Flux, look for it and for Stalled. A quota never has both.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is there, and true, as long as a part of the spec can't come into
	// force before somebody corrects the spec.
	ConditionStalled = "Stalled"
	// ConditionBlocked is of a LocalResourceQuota, and true while workloads of its
	// namespace wait for room in the quota, because it refused objects that their
	// controllers created.
	ConditionBlocked = "Blocked"
)

// WokenWhenItFits is a part of the message of the condition Blocked if the operator wakes the workloads that wait.
const WokenWhenItFits = "each is woken as soon as it fits"

// Reasons of the conditions of a ClusterResourceQuota and of its LocalResourceQuotas.
const (
	// ReasonCounted: everything that the quota limits has been counted.
	ReasonCounted = "Counted"
	// ReasonCounting: the first count for the current spec is under way.
	ReasonCounting = "Counting"
	// ReasonLedgerLost: somebody deleted, edited or restored the quota's QuotaLedger, so what was
	// being admitted is unknown; the message says until when nothing is. Also of an event.
	ReasonLedgerLost = "LedgerLost"
	// ReasonLedgerUnavailable: the quota's QuotaLedger can't be read or written; the
	// message says since when, and why.
	ReasonLedgerUnavailable = "LedgerUnavailable"
	// ReasonNotSettled: everything is counted, and the quota's QuotaLedger does not take the count;
	// the message says since when, and why.
	ReasonNotSettled = "NotSettled"
	// ReasonInvalidSpec: the spec can't be enforced; the message says why.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonWebhookConfigured: the API server has loaded a webhook configuration that
	// covers the quota.
	ReasonWebhookConfigured = "WebhookConfigured"
	// ReasonWebhookPending: the webhook configuration doesn't cover the quota yet, or
	// the API server hasn't loaded the one that does.
	ReasonWebhookPending = "WebhookPending"
	// ReasonWebhookEdited: somebody else has edited the webhook configuration so that it
	// doesn't cover the quota, and no repair has lasted yet; the message says who.
	ReasonWebhookEdited = "WebhookEdited"
	// ReasonProbeFailed: the operator can't find out whether the API server asks it.
	ReasonProbeFailed = "ProbeFailed"
	// ReasonWithinLimits: of no resource more is used than the quota allows.
	ReasonWithinLimits = "WithinLimits"
	// ReasonSurging: used is above hard, and within spec.surge, because pods replace others; the message says which
	// workloads' and since when.
	ReasonSurging = "Surging"
	// ReasonUsedAboveHard: used is above hard; the message names each resource. Also
	// of an event, when it comes to be so of one resource.
	ReasonUsedAboveHard = "UsedAboveHard"
	// ReasonAdmittedAboveHard: used is above hard, and all of it was admitted because the mode is Warn
	// or Audit.
	ReasonAdmittedAboveHard = "AdmittedAboveHard"
	// ReasonAdmittedWhileUnavailable: used is above hard, because requests were admitted while the operator
	// couldn't decide. Also of an event, when that is found.
	ReasonAdmittedWhileUnavailable = "AdmittedWhileUnavailable"
	// ReasonNoneProtected: no protected namespace is selected.
	ReasonNoneProtected = "NoneProtected"
	// ReasonProtectedNamespaces: a protected namespace is selected; the message names it.
	ReasonProtectedNamespaces = "ProtectedNamespaces"
	// ReasonAllAvailable: the cluster serves every resource that the quota names.
	ReasonAllAvailable = "AllAvailable"
	// ReasonNotServed: the cluster doesn't serve a resource that the quota names.
	ReasonNotServed = "NotServed"
	// ReasonNotWatchable: a resource that the quota names can't be listed and watched.
	ReasonNotWatchable = "NotWatchable"
	// ReasonNotLimitable: Kubernetes keeps no quota on a resource that the quota names.
	ReasonNotLimitable = "NotLimitable"
	// ReasonProgressing: the operator works on it, and needs nobody's help; the message says at what.
	ReasonProgressing = "Progressing"
	// ReasonProgressingWithRetry: the operator tries again; the message says what must be mended outside of it.
	ReasonProgressingWithRetry = "ProgressingWithRetry"
	// ReasonWaitingForRoom: workloads wait for room; the message says how many, short of
	// what, and since when.
	ReasonWaitingForRoom = "WaitingForRoom"
	// ReasonNoneWaiting: no workload of the namespace waits for room.
	ReasonNoneWaiting = "NoneWaiting"
)

// Reasons of the events of a ClusterResourceQuota, of its LocalResourceQuotas, and of
// workloads that it limits.
const (
	// ReasonQuotaShort is of an event on a workload: it was applied, and not all of its
	// objects fit now.
	ReasonQuotaShort = "QuotaShort"
	// ReasonQuotaExceeded: a request was refused because it didn't fit.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonWouldExceed: a request that didn't fit was admitted, because the mode is Warn or Audit.
	ReasonWouldExceed = "WouldExceed"
	// EventAdmittedWhileUnavailable: used is found to be above hard, because requests were admitted while the operator
	// couldn't decide.
	EventAdmittedWhileUnavailable = ReasonAdmittedWhileUnavailable
	// EventLedgerLost: somebody deleted, edited or restored the quota's QuotaLedger, so nothing is admitted for a while.
	EventLedgerLost = ReasonLedgerLost
	// ReasonRequestIncomplete: a request was refused because it doesn't say how
	// much it asks for of what the quota limits.
	ReasonRequestIncomplete = "RequestIncomplete"
	// ReasonUsageUnknown: a request was refused because what is used isn't known yet,
	// or because too many requests were in flight.
	ReasonUsageUnknown = "UsageUnknown"
	// ReasonTooMuchInDoubt: a request was refused because its namespace holds too much for requests
	// that seem to have failed.
	ReasonTooMuchInDoubt = "TooMuchInDoubt"
	// ReasonNearLimit: 80 percent of a limit are used.
	ReasonNearLimit = "NearLimit"
	// ReasonLimitReached: all of a limit is used.
	ReasonLimitReached = "LimitReached"
)

// Level tells how near to its limit the use of a resource has come. It is the
// reason of the event that tells so.
//
// +kubebuilder:validation:Enum=NearLimit;LimitReached;UsedAboveHard
type Level string

// Levels, from low to high.
const (
	LevelNearLimit     Level = ReasonNearLimit
	LevelLimitReached  Level = ReasonLimitReached
	LevelUsedAboveHard Level = ReasonUsedAboveHard
)

// ClusterResourceQuotaSelector selects namespaces. A namespace is selected
// when it matches both labels and annotations, where given.
//
// +kubebuilder:validation:XValidation:rule="(has(self.labels) && ((has(self.labels.matchLabels) && size(self.labels.matchLabels) > 0) || (has(self.labels.matchExpressions) && size(self.labels.matchExpressions) > 0))) || (has(self.annotations) && size(self.annotations) > 0)",message="must restrict the namespaces: give at least one entry in labels.matchLabels, labels.matchExpressions or annotations"
type ClusterResourceQuotaSelector struct {
	// labels selects namespaces by their labels.
	// +optional
	// +nullable
	LabelSelector *metav1.LabelSelector `json:"labels,omitempty"`

	// annotations selects namespaces that carry every one of these
	// annotations with exactly this value.
	// +optional
	// +nullable
	AnnotationSelector map[string]string `json:"annotations,omitempty"`
}

// ResourceQuotaSpec has the fields of the ResourceQuotaSpec of Kubernetes
// (k8s.io/api/core/v1), and converts to it.
//
// +kubebuilder:validation:XValidation:rule="(has(self.scopes) ? self.scopes : []).all(s, s in (has(oldSelf.scopes) ? oldSelf.scopes : [])) && (has(oldSelf.scopes) ? oldSelf.scopes : []).all(s, s in (has(self.scopes) ? self.scopes : []))",message="field is immutable",fieldPath=".scopes"
type ResourceQuotaSpec struct {
	// hard is the set of limits for each named resource, that is, the most
	// that the selected namespaces may hold together. Names are those of
	// ResourceQuota: https://kubernetes.io/docs/concepts/policy/resource-quotas/
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	// +kubebuilder:validation:XValidation:rule="self.all(name, type(self[name]) == int ? self[name] >= 0 : !self[name].startsWith('-'))",message="must be greater than or equal to 0"
	Hard corev1.ResourceList `json:"hard,omitempty"`

	// scopes restrict the quota to the objects that match each of them.
	// Can't be changed after creation, as in ResourceQuota.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Scopes []corev1.ResourceQuotaScope `json:"scopes,omitempty"`

	// scopeSelector is like scopes, but its expressions may also name values.
	// An object is limited when it matches both scopes and scopeSelector.
	// +optional
	ScopeSelector *corev1.ScopeSelector `json:"scopeSelector,omitempty"`
}

// ClusterResourceQuotaSpec says which namespaces share a quota, and what they
// may hold together.
type ClusterResourceQuotaSpec struct {
	// selector chooses the namespaces that share this quota. It must not be
	// empty; a namespace may be selected by any number of quotas, and each of
	// them limits it.
	Selector ClusterResourceQuotaSelector `json:"selector"`

	// quota is the limit on what the selected namespaces hold together.
	Quota ResourceQuotaSpec `json:"quota"`

	// surge is room above quota.hard for pods that replace others, such as in the rolling update of a Deployment.
	// No other pod can take it.
	// +optional
	Surge Surge `json:"surge,omitzero"`

	// preflight says what is done when a workload, such as a Deployment, is applied
	// whose pods don't fit now: Warn, the default, warns whoever applies it; Deny refuses
	// it; Off does nothing. Pods are limited in any case.
	// +optional
	Preflight PreflightMode `json:"preflight,omitempty"`

	// enforcement says what is done with requests that don't fit. Without it they are
	// refused.
	// +optional
	Enforcement Enforcement `json:"enforcement,omitzero"`
}

// Surge is room for pods that replace others, and for what comes with such pods.
type Surge struct {
	// hard is how much more than quota.hard such pods may bring what the selected namespaces hold together to.
	// Each name must be in quota.hard, too.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	// +kubebuilder:validation:XValidation:rule="self.all(name, type(self[name]) == int ? self[name] >= 0 : !self[name].startsWith('-'))",message="must be greater than or equal to 0"
	Hard corev1.ResourceList `json:"hard,omitempty"`
}

// SurgeStatus is how much of the surge is taken.
type SurgeStatus struct {
	// hard is that of spec.surge.
	Hard corev1.ResourceList `json:"hard"`

	// used is how much of it is taken: what is used and reserved above quota.hard, whatever the cause. If that limit
	// was lowered, it may be more than hard.
	// +optional
	Used corev1.ResourceList `json:"used,omitempty"`

	// workloads are those whose pods have taken surge since what is used and reserved was within quota.hard last: at
	// most 20 of them, the first ones first. In a view, only those of its namespace.
	// +optional
	// +listType=atomic
	Workloads []SurgingWorkload `json:"workloads,omitempty"`
}

// SurgingWorkload is a workload whose pods have taken surge.
type SurgingWorkload struct {
	// kind of the workload, such as Deployment.
	Kind string `json:"kind"`

	// namespace of the workload.
	Namespace string `json:"namespace"`

	// name of the workload.
	Name string `json:"name"`

	// since is when it took surge first.
	Since metav1.Time `json:"since"`
}

// PreflightMode says what is done when a workload is applied whose pods don't fit now.
//
// +kubebuilder:validation:Enum=Warn;Deny;Off
type PreflightMode string

// The modes, from the default on. An empty one is Warn.
const (
	PreflightWarn PreflightMode = "Warn"
	PreflightDeny PreflightMode = "Deny"
	PreflightOff  PreflightMode = "Off"
)

// RoomAnnotation is set on a workload that a quota refused objects of, through its status
// subresource, when there is room for them: its controller then tries again at once. Its
// value is the time at which there was room.
const RoomAnnotation = "quota.sharedquota.dev/room"

// WaitingOwners are the workloads that wait for room in a quota, because creations of
// theirs were refused.
type WaitingOwners struct {
	// owners is how many wait.
	Owners int32 `json:"owners"`

	// since is when the first of them was refused first.
	Since metav1.Time `json:"since"`
}

// ResourceQuotaStatusByNamespace is one namespace's slice of the usage.
type ResourceQuotaStatusByNamespace struct {
	// namespace is the name of the namespace.
	Namespace string `json:"namespace"`

	// status holds the limits of the whole quota and what this namespace
	// uses of them.
	Status corev1.ResourceQuotaStatus `json:"status"`
}

// ResourcePeaks are the most that was used and reserved at once of one resource, in a day, a week and a month.
// A day is one in UTC. They are as the leading replica sees them, up to twenty times a second.
type ResourcePeaks struct {
	// resource is a name in spec.quota.hard.
	Resource corev1.ResourceName `json:"resource"`

	// day is the most of today. Absent if nothing of today is known.
	// +optional
	Day Peak `json:"day,omitzero"`

	// week is the most of today and the six days before. Absent if nothing of them is known.
	// +optional
	Week Peak `json:"week,omitzero"`

	// month is the most of today and the 29 days before.
	Month Peak `json:"month"`

	// surge is the most surge of today and the 29 days before that was taken at once, which the other peaks leave out.
	// Absent if none was.
	// +optional
	Surge Peak `json:"surge,omitzero"`

	// others are the peaks of further days, which will be the most of a week or of a month as days pass.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=30
	Others []Peak `json:"others,omitempty"`
}

// Peak is the most that was used and reserved at once.
type Peak struct {
	// amount that was used and reserved.
	Amount resource.Quantity `json:"amount"`

	// at is when so much was used and reserved: first, on the last day on which it was.
	At metav1.Time `json:"at"`
}

// DoubtfulReservations are what one namespace holds for requests that seem to have failed.
type DoubtfulReservations struct {
	// namespace is the name of the namespace.
	Namespace string `json:"namespace"`

	// count is the number of such requests.
	Count int32 `json:"count"`

	// amounts are what they hold together.
	Amounts corev1.ResourceList `json:"amounts"`
}

// ClusterResourceQuotaStatus is what is used of a quota. It is for reading:
// enforcement doesn't depend on it.
type ClusterResourceQuotaStatus struct {
	// observedGeneration is the generation of the spec that this status
	// describes; -1 before the operator has written a status.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// ledger is the UID of the QuotaLedger by which requests are admitted. A ledger
	// admits nothing before it stands here, so that one that is missing can be told
	// from one that never was.
	// +optional
	Ledger types.UID `json:"ledger,omitempty"`

	// total holds the limits, and what all selected namespaces together use
	// of them: always the sum over namespaces.
	// +optional
	Total corev1.ResourceQuotaStatus `json:"total,omitempty"`

	// reserved is what has been admitted and not yet been observed in the
	// cluster. It counts against the limits like usage, becomes usage when
	// the objects appear, and is freed when it turns out that they never will.
	// +optional
	Reserved corev1.ResourceList `json:"reserved,omitempty"`

	// surge is how much of spec.surge is taken. Absent if the quota has none.
	// +optional
	Surge *SurgeStatus `json:"surge,omitempty"`

	// doubtful is what of it individual namespaces hold for requests that seem to have
	// failed after they were admitted, such as by another webhook: their objects have not
	// appeared. It is freed when the requests have certainly ended. Sorted by namespace.
	// +optional
	// +listType=map
	// +listMapKey=namespace
	Doubtful []DoubtfulReservations `json:"doubtful,omitempty"`

	// waiting is how many workloads wait for room, because the quota refused objects
	// that their controllers created. Absent if none does.
	// +optional
	Waiting *WaitingOwners `json:"waiting,omitempty"`

	// levels tells of each resource of which 80 percent or more are used how near
	// to its limit that is: NearLimit, LimitReached or UsedAboveHard. A level is
	// left again only when use has fallen ten percent of the limit below where it
	// begins, so that use that goes up and down there is told once;
	// UsedAboveHard as soon as used is no longer above hard.
	// +optional
	Levels map[corev1.ResourceName]Level `json:"levels,omitempty"`

	// peaks are the most that was used and reserved at once of each resource in quota.hard, sorted
	// by name.
	// +optional
	// +listType=map
	// +listMapKey=resource
	Peaks []ResourcePeaks `json:"peaks,omitempty"`

	// namespaces holds each selected namespace's slice of the usage, sorted
	// by name. If the slices would take more than 900 KiB, hard is left out of
	// them; if that is not enough, amounts of zero, and then all amounts of the
	// last ones.
	// +optional
	// +nullable
	// +listType=atomic
	Namespaces []ResourceQuotaStatusByNamespace `json:"namespaces,omitempty"`

	// namespaceCount is the number of selected namespaces.
	// +optional
	NamespaceCount int32 `json:"namespaceCount"`

	// selector is the selector in the form that kubectl's --selector takes;
	// annotations follow in brackets. A long one is cut. For the columns of kubectl get.
	// +optional
	Selector string `json:"selector,omitempty"`

	// summary is used and hard of each resource, as in
	// "pods: 3/10, requests.cpu: 300m/2". For the columns of kubectl get.
	// +optional
	Summary string `json:"summary,omitempty"`

	// conditions of the quota: Ready, Enforced, Exceeded, ResourceUnavailable and
	// ProtectedSelected; also Reconciling or Stalled as long as the spec isn't fully in force.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterResourceQuota limits what the namespaces it selects hold together,
// as ResourceQuota does for one namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=crq,categories=all-quotas
// +kubebuilder:printcolumn:name="Selector",type=string,JSONPath=`.status.selector`,description="Which namespaces share the quota"
// +kubebuilder:printcolumn:name="Namespaces",type=integer,JSONPath=`.status.namespaceCount`,description="How many namespaces share the quota"
// +kubebuilder:printcolumn:name="Enforced",type=string,JSONPath=`.status.conditions[?(@.type=="Enforced")].status`,description="Whether requests are checked against the quota"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Used",type=string,JSONPath=`.status.summary`,description="Used and hard of each resource"
type ClusterResourceQuota struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which namespaces share the quota, and what they may hold.
	Spec ClusterResourceQuotaSpec `json:"spec"`

	// status is what is used of the quota.
	// +optional
	// +structType=atomic
	// +kubebuilder:default:={"observedGeneration":-1}
	Status ClusterResourceQuotaStatus `json:"status,omitempty"`
}

// ClusterResourceQuotaList is a list of ClusterResourceQuotas.
//
// +kubebuilder:object:root=true
type ClusterResourceQuotaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the quotas.
	Items []ClusterResourceQuota `json:"items"`
}
