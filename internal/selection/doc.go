// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package selection tells which quotas cover a namespace.
//
// A Selector is the compiled selector of one ClusterResourceQuota. The package
// knows labels and annotations and nothing else of a namespace: its name only
// as a label, and not whether it exists.
//
// Disjoint turns the selectors of all quotas into label selectors of which a
// namespace meets one at most, as the entries of a webhook configuration must
// be: a request that is split over two can't be charged in all or none. It
// knows conjunctions, which are boxes in the space of labels. Two boxes have a
// box in common, and what is outside a box is boxes again; only what a label may
// be, absent or one of some values, can't always be asked for in one.
//
// Invariants:
//
//   - No selector selects everything by being empty: an empty one does not
//     compile, and the zero Selector matches nothing.
//   - Equal selectors have the same String, whatever the order that they are
//     written in.
//   - No labels meet two entries of Disjoint, and what a Selector matches meets
//     one, unless its name is protected.
package selection
