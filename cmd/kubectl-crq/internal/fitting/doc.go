// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fitting tells whether what manifests ask for fits into what quotas
// leave.
//
// It has internal/evaluation charge each object to each quota, as admission
// would, and compares the sums. It doesn't know how manifests come to pods, and
// nothing of clients.
//
// What it judges is what must be free at some moment, so that all objects come to
// be in the end. Controllers try again: what one of them frees on the way it may
// use again. But what one manifest frees is not counted on for another.
//
// Invariants:
//
//   - What is said to fit can be admitted, one object after another.
//   - More to make, or less available, never turns "doesn't fit" into "fits".
//   - What isn't counted yet is never taken for available.
package fitting
