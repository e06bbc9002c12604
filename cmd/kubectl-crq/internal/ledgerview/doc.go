// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ledgerview makes a QuotaLedger readable: what it holds for whom, and
// whether anything is admitted by it.
package ledgerview
