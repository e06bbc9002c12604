// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package balance adds up a quota: what its count and its ledger say together, with
// each object either in what is used or in what is reserved.
//
// Count and ledger change apart. An object is counted up to 160 ms before the
// ledger settles its reservation; if both were added as they are, the object would
// be there twice. So the ledger is settled by the count first, in a draft that
// nobody stores.
//
// The package knows counting and the ledger's arithmetic. It doesn't know where
// either comes from, who shows the figures, or when.
package balance
