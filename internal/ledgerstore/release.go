// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledgerstore

// How reservations are encoded may change, and replicas of two releases share the
// ledgers while one replaces the other. A replica that meets an encoding that it
// doesn't know can neither grant nor refuse. So a new encoding takes two releases:
//
//  1. newest is raised: the release reads the new one too, and writes the old one;
//  2. written is raised: the next release writes the encoding that the one before can read.
//
// Then any two neighbours run side by side, and either can be rolled back to the
// other. While they do, each swap rewrites the whole ledger in the writer's encoding:
// a release that reads an encoding must be able to write all that enforcement needs of
// it in its own. A release that is skipped leaves its replicas with ledgers that they refuse
// to judge by, until they are upgraded.
//
// An encoding is a matter of the reservations' text alone. How the checksum is
// computed must stay as it is, for by that an older operator knows a newer one's
// ledger from an edited one. Ledgers of encoding 1 had no checksum: each is taken for
// edited.
const (
	// newest is the newest encoding that this release reads.
	newest int32 = 2
	// written is the encoding that this release writes.
	written int32 = 2
)

// formatOf returns how records are encoded.
func formatOf(int32) format { return format{encode: encodeRecord, decode: decodeRecord} }
