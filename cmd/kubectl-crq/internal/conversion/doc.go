// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conversion turns the shared quotas of others into
// ClusterResourceQuotas: OpenShift's ClusterResourceQuota, HNC's
// HierarchicalResourceQuota, KubeVirt's ApplicationAwareClusterResourceQuota, and
// what Capsule's Tenant, ResourcePool and GlobalResourceQuota say of quotas.
//
// Invariants:
//   - Whatever the input says is in a quota of the output or in a comment. Each
//     field is known by its path; what a conversion takes is crossed off, and what
//     is left at the end was not carried over.
//   - A quota that comes out is valid. What would not be is a comment.
//   - The same input gives the same output, in the order of the input.
//
// It knows text: what is in files, and neither files nor clusters.
package conversion
