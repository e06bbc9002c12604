// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics defines the operator's metrics about itself. Names and labels
// are listed here and nowhere else.
package metrics
