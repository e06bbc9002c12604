// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wake has every replica know which workloads wait for room, and lets the leader wake them when
// there is some.
//
//   - Exchange publishes what this replica heard as a ConfigMap in the operator's own namespace, and reads
//     those of the others. It runs on every replica. On the leader it also takes over the ConfigMaps of
//     replicas that have gone.
//   - Reviewer looks from time to time whether a workload that waits still lacks objects: somebody may have
//     deleted it, or scaled it down. It runs on the leader.
//   - Waker sets the annotation quota.sharedquota.dev/room through the status subresource of as many
//     workloads as fit. Any change of a workload makes its controller try again at once. It runs on the
//     leader, unless it is switched off.
//
// Enforcement knows nothing of this package.
package wake
