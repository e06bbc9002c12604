// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workloads is the webhook that judges a workload when it is applied: whether all of its pods
// fit now into the quotas that cover its namespace. It warns whoever applies it, or refuses it, as
// each quota's spec.preflight says.
//
// It takes no part in enforcement. It goes by what this process has in memory, writes nothing but
// events, and reads nothing but the workload that a scale or an autoscaler names. Whatever goes
// wrong, the request is let pass, and a warning says what was not judged.
//
// Invariants:
//
//   - What it calls fitting, alone, is admitted, if no other webhook changes the pods. If the cost of
//     something that may be made isn't known, it says that it didn't judge.
//   - What it calls short may fit. It refuses what surely doesn't, and never what an autoscaler asks for.
//   - It judges as many requests at once as there are processors, each for a bounded time, and none
//     whose pods have too many parts.
package workloads
