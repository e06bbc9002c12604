// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trail remembers what each ledger said before somebody deleted or edited
// it, from the events of a watch.
//
// What it returns is what the operator wrote last, whichever replica it was: a
// deletion's event carries the final state, and an edit is known to follow directly
// on a state that was seen when the object's generation, which the API server
// raises with each change of the entries, is the next one. No replica writes over
// a ledger that was edited. After a gap of the watch, or if this process has just
// started, nothing is returned, because a partial history is not safe to restore.
//
// A ledger that is sealed has granted nothing. It says nothing about what is in
// flight, and the one before it is remembered instead.
package trail
