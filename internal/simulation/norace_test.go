//go:build !race

// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

// raceEnabled reports whether the race detector makes everything slow.
const raceEnabled = false
