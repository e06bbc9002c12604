// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ledgers is the controller that tells the machines of this process what
// other processes write, so that the next batch starts from it. It also tells the
// trail of every version that a watch shows, in order. It runs in every replica.
package ledgers
