// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics defines what the operator measures about itself. Names and
// labels are listed here and nowhere else.
package metrics
