// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lag knows for how long changes have waited to be shown where people read
// them. Between them and the people are writes that are paced, and may fail.
package lag
