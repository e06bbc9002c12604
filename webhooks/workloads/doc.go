// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workloads is the webhook that judges a workload when it is applied: whether all of its pods fit now into the
// quotas that cover its namespace. It warns the user, or refuses the workload, as each quota's spec.preflight says.
//
// It takes no part in enforcement. It goes by this process's memory, writes nothing but events, and reads nothing but
// the workload that a scale or an autoscaler names. On any failure, the request is let pass, and a warning says which
// part was not judged.
//
// Invariants:
//
//   - A workload that it calls fitting, alone, is admitted, if no other webhook changes the pods. If the cost of
//     something that may be made isn't known, it says that it didn't judge.
//   - A workload that it calls short may fit. It refuses only workloads that surely don't, and never a request of an
//     autoscaler.
//   - It judges as many requests at once as there are processors, each for a bounded time, and none
//     whose pods have too many parts.
package workloads
