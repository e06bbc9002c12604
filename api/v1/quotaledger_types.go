// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// QuotaLedgerEntries is the state that admission compares and swaps. Its
// schema is light and its collections are atomic on purpose: the API server
// pays for every structured element at every write, and a ledger is written
// many times a second.
type QuotaLedgerEntries struct {
	// encoding is the version of the encoding of reservations. An operator
	// refuses to judge by a ledger whose encoding it doesn't know.
	// +optional
	Encoding int32 `json:"encoding,omitempty"`

	// generation of the quota's spec that used was counted for.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// digest of the parts of the quota that decide what counts: its UID,
	// selector, scopes and resource names. While it is the same, used holds
	// for a newer generation too.
	// +optional
	Digest string `json:"digest,omitempty"`

	// used is what has been observed in the selected namespaces.
	// +optional
	// +mapType=atomic
	Used corev1.ResourceList `json:"used,omitempty"`

	// counted maps each counted resource to the resourceVersion up to which
	// used includes it. A count that is older must not replace used.
	// +optional
	// +mapType=atomic
	Counted map[string]string `json:"counted,omitempty"`

	// reservations hold a charge each for an object that was admitted and has
	// not been observed yet, in the encoding of the internal package
	// ledgerstore.
	// +optional
	// +listType=atomic
	Reservations []string `json:"reservations,omitempty"`

	// fence is a spec that lowers a limit, from before it is stored until used is
	// counted for it: its generation, when the edit has certainly succeeded or failed,
	// and its limits. They bind whoever knows an older spec.
	// +optional
	Fence string `json:"fence,omitempty"`

	// sealed is since when this ledger has admitted nothing: what was in flight
	// when it was made may not all be in it. Without it the ledger is open.
	// +optional
	Sealed *metav1.Time `json:"sealed,omitempty"`

	// checksum of the other entries, the owner, and this object's UID and generation.
	// Where it doesn't match, somebody else than the operator has written the
	// ledger: nothing is admitted by it, and another one takes its place.
	// +optional
	Checksum string `json:"checksum,omitempty"`
}

// QuotaLedger is what enforcement of the ClusterResourceQuota of the same name
// compares and swaps on its resourceVersion. Internal to the operator.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type QuotaLedger struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// entries are what has been counted and reserved.
	// +optional
	// +structType=atomic
	Entries QuotaLedgerEntries `json:"entries,omitempty"`
}

// QuotaLedgerList is a list of QuotaLedgers.
//
// +kubebuilder:object:root=true
type QuotaLedgerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the ledgers.
	Items []QuotaLedger `json:"items"`
}
