// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package quotastatus is the controller that writes what is used of each
// ClusterResourceQuota into its status, from memory. Writes are coalesced: a
// quota that changes hundreds of times a second has its status written once a
// second.
package quotastatus
