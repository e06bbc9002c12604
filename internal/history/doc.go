// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package history remembers what quotas have seen: the most that was used and reserved of each resource, the requests
// that didn't fit, and who changed a quota. It decides nothing.
package history
