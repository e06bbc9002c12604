// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package figures gathers from memory what the metrics tell of quotas.
package figures
