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
// Invariant: what it calls fitting, alone, is admitted. What it calls short may fit.
package workloads
