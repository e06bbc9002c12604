// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package live follows quotas by a watch and tells of every state that lasts. It
// never polls: while nothing changes nothing is asked, and a watch that breaks is
// taken up again, later and later while the API server can't be reached.
package live
