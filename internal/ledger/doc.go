// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ledger is the arithmetic of a shared quota: used and reserved amounts,
// and whether one more charge fits.
//
// It is a pure state machine. Reserve, Release, Settle and Drop turn one State
// into the next through a Draft; nothing here knows a clock, a client, a
// context, a goroutine or a log.
//
// Invariant: for every resource, the objects in the selected namespaces use at
// most Used plus the reserved amounts. Three rules keep it:
//
//   - a reservation is made before its object can be persisted;
//   - it is removed only together with a count that includes its object, or
//     when its object is known never to come or to be gone (Seen, Drop,
//     Release);
//   - a count replaces Used only when it is at least as new as the one before.
package ledger
