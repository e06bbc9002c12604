// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package covering tells by which labels and annotations a quota selects a
// namespace, or what keeps it from doing so.
package covering
