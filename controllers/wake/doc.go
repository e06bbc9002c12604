// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wake lets the leader wake workloads that wait for room when there is some.
//
//   - Exchange has the replicas tell each other which workloads wait. Each publishes what it heard as a ConfigMap in the
//     operator's own namespace, and follows those of the others. The leader takes over what replicas published that have
//     gone.
//   - Reviewer looks from time to time whether a workload that waits still lacks objects: somebody may have
//     deleted it, or scaled it down. It runs on the leader.
//   - Waker sets the annotation quota.sharedquota.dev/room through the status subresource of as many
//     workloads as fit. Any change of a workload makes its controller try again at once, but for pods'
//     ephemeral volumes, whose claims it creates itself. It runs on the leader, unless it is switched off.
//
// Enforcement knows nothing of this package.
package wake
