// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wake lets the leader wake workloads that wait for room when there is some. Package exchange has every
// replica know which wait.
//
//   - Reviewer looks from time to time whether a workload that waits still lacks objects: somebody may have
//     deleted it, or scaled it down. It runs on the leader.
//   - Waker sets the annotation quota.sharedquota.dev/room through the status subresource of as many
//     workloads as fit. Any change of a workload makes its controller try again at once. It runs on the
//     leader, unless it is switched off.
//
// Enforcement knows nothing of this package.
package wake
