//go:build !race

// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

// raceFlags make the operator be built as the caller was.
func raceFlags() []string { return nil }
