// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conversion turns the shared quotas of others into ClusterResourceQuotas: OpenShift's ClusterResourceQuota, HNC's
// HierarchicalResourceQuota, KubeVirt's ApplicationAwareClusterResourceQuota, and the quotas in Capsule's Tenant,
// ResourcePool and GlobalResourceQuota.
//
// Invariants:
//   - Each document of the input, and each quota within another object or text, is
//     converted, or a comment says why not, or that its kind isn't known.
//   - Each field of a converted object is in a quota of the output or in a comment:
//     it is decoded strictly, into types that have only the fields that are converted.
//   - A quota that comes out is valid. A quota that would not be valid is a
//     comment.
//   - The same input gives the same output, in the order of the input.
//   - No comment has an error of a decoder in Go's words.
//
// It knows the text of files, and neither files nor clusters.
package conversion
