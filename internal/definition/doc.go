// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package definition turns a ClusterResourceQuota into the values that the domain
// works with: limits for the ledger, a quota for evaluation, a selector of
// namespaces. It validates specs in the words of Kubernetes' own validation of
// ResourceQuota.
//
// A Selector is the compiled selector of one quota. It knows a namespace's
// labels and annotations, its name only as a label, and not whether it exists.
//
// Disjoint turns the selectors of all quotas into label selectors of which a
// namespace meets one at most, as the entries of a webhook configuration must
// be: a request that is split over two can't be charged in all or none. It
// knows conjunctions, which are boxes in the space of labels. Two boxes have a
// box in common, and the rest of a box is boxes again. One label selector can't always
// ask for all that a label may be: absent, or one of some values.
//
// Invariants:
//
//   - No selector selects everything by being empty: an empty one does not
//     compile, and the zero Selector matches nothing.
//   - Equal selectors have the same String, in whichever order they are written.
//   - No labels meet two entries of Disjoint. Labels that a Selector matches meet
//     one, unless the namespace's name is protected.
package definition
