// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package waiting remembers which workloads wait for room: the controller owners of objects that a
// quota refused, such as the ReplicaSet of a pod. It decides which of them are woken when there is
// room. No grant rests on it.
//
// List has the news that this replica heard itself and the parts of the others, merged. Its methods may be called
// concurrently. Room plans the wakes of one quota, without a lock. The package has no client, no goroutine and no
// clock: the time is an argument.
//
// Invariants:
//
//   - An owner waits for one quota, which refused an object of it last.
//   - An owner is known by its namespace and its UID. The namespace is that of the refused request, so no client can
//     report anything of owners in another namespace, even with forged owner references.
//   - A replica remembers at most MaxOwners owners for a quota and MaxBytes in all. Beyond that, the namespace that has
//     most of them loses the owners without news for the longest time.
//   - The newest news of an owner decides, from whichever replica. News of two replicas are compared by their clocks,
//     so if these differ, an owner may be woken for nothing, or not be woken until its controller tries again by
//     itself.
package waiting
