// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wake lets the leader wake workloads that wait for room when there is some.
//
//   - Exchange makes the replicas share their lists of waiting workloads. Each publishes its news as a ConfigMap in the
//     operator's own namespace, and follows the others' ConfigMaps. The leader takes over the ConfigMaps of replicas
//     that have gone.
//   - Reviewer looks from time to time whether a workload that waits still lacks objects: it may have been deleted, or
//     scaled down. It runs on the leader.
//   - Waker sets the annotation quota.sharedquota.dev/room through the status subresource of as many
//     workloads as fit. Any change of a workload makes its controller try again at once, but for pods'
//     ephemeral volumes, whose claims it creates itself. It runs on the leader, unless it is switched off.
//
// Enforcement knows nothing of this package.
package wake
