// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crowd is many workloads in many namespaces, each of which wants one pod, and notes when their pods
// come. The suite and hack/bench let them wait for room.
package crowd
