// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package judge follows what the API server commits and tells the most that
// ever lived under each ClusterResourceQuota. It decides the tests of
// concurrency and of faults.
//
// It stands outside of the operator: it takes none of the operator's figures
// and none of its packages but the API types. What an object costs comes
// straight from the evaluators of Kubernetes.
//
// It watches etcd, not the API server. The API server's watches are fed from
// there; it is one stream over all types in the exact order of commits, where
// watches of several types have no order among them; and it goes on over a
// restart of the API server, which answers a resumed watch with 410 Gone.
//
// What it says:
//
//   - Peak is the most that ever lived at once, for whatever reason: an object
//     that came or grew, a namespace that was relabelled, a quota that was
//     created or changed.
//   - A Violation is an object's commit that raised what lives of a resource,
//     the sum after it being above hard and surge, if the mode of the resource is Deny. A
//     relabelled namespace and a lowered limit raise Peak above hard at most, and
//     are no violations.
//   - Surged are such commits above hard, and within surge. The judge doesn't know which pods replace
//     others: where none does, nothing may be Surged.
//   - It doesn't know why. An object that was admitted before the limit was
//     lowered, or before the quota was in force, and committed after, is a
//     violation too. So is a pod that its status alone makes cost more.
//
// Limits:
//
//   - A pod past its grace period stops counting without a commit. The judge
//     goes by its own clock, which is later than the commit that it judges: it
//     may miss a violation of the same milliseconds, and never makes one up.
//   - What ResourceClaims cost depends on more than themselves and is not
//     counted, nor are resources that are missing in builtIns. A quota that
//     limits such a resource is an error of Start and Report, for as long as
//     it exists.
//
// Invariants:
//
//   - A gap in the stream is an error: etcd's when it has compacted what was
//     not read yet, the judge's own when the versions of a key don't follow on
//     each other. So is an object that can't be decoded or measured. After an
//     error nothing more is followed, and Report returns it.
//   - What is kept is bounded by the objects that live, and 100 violations and 100 commits that took surge of
//     each quota that had any; the others are counted.
package judge
