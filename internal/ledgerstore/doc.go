// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ledgerstore keeps ledgers in QuotaLedger objects.
//
// It implements the Store of package driver with compare-and-swap on resourceVersion, and owns the encoding of
// reservations: one short string each, for the API server pays for structure at every write. It knows neither the
// reason of a charge nor its caller.
//
// Invariants:
//
//   - An encoding that this release doesn't know is an error.
//   - A ledger that isn't as a Store wrote it is an edited one, which grants nothing. So is a copy from a backup, in
//     this cluster or another: the checksum is of the object's UID and generation. The UID of the cluster needn't be in
//     it, because each API server gives new UIDs; one stays the same only with all of etcd.
//   - So is a ledger that can't be read. If that is so of single reservations alone,
//     it grants nothing until Recovery of package usage has stored it without them.
package ledgerstore
