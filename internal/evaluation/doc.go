// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package evaluation computes the cost of an object for each quota.
//
// It asks the evaluators of Kubernetes on which ResourceQuota itself is built. The cost differs from ResourceQuota in
// two points:
//
//   - A condition that says that the node can't resize a pod is believed only if it
//     is about the pod's present generation (charges.go).
//   - A quantity of 1e30 or more counts as 1e30 (magnitude.go).
//
// The package answers two questions:
//
//   - Charges: how much does a request add to each quota, or does a quota refuse the object as such? Does it consume a
//     resource that is limited by default, and no quota covers that? This is for admission.
//   - Footprint and Usage: how much of a quota does an existing object use? This is for counting, which keeps the
//     footprint instead of the object.
//
// LoadLimited reads the file of resources that are limited by default, which is the configuration of kube-apiserver's
// own ResourceQuota plugin. A file that is accepted has the same meaning here as for kube-apiserver. An entry that
// kube-apiserver would take and then ignore, or match with other objects than the file says, is an error.
//
// Resources, Rules and NeedsObject return the resources that must be watched, the requests that must be seen, and
// whether metadata is enough.
//
// The package does not know namespaces, limits that are reached, clients or caches, with one exception: the cost of a
// ResourceClaim depends on device classes and on the pod that owns it, which ClaimSources shows.
//
// Invariants:
//
//   - A charge and a usage hold only names that the quota limits, and no zeros.
//   - Charges never depends on the use of a quota.
//   - Objects and quotas that are passed in are not kept.
//   - Evaluators are safe for concurrent use.
package evaluation
