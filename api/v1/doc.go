// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 holds the API of the shared quota operator.
//
// A ClusterResourceQuota is what an administrator writes, a LocalResourceQuota
// what a project owner reads, and a QuotaLedger what admission compares and
// swaps. The package knows types, validation markers and registration, and no
// behaviour.
//
// +kubebuilder:object:generate=true
// +groupName=quota.sharedquota.dev
package v1
