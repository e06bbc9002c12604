// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package events says in which words people are told of what happens to a quota:
// one constructor for each event, on the quota for who administers it, and on a
// namespace's view of it for who owns that. What stands on a view names no other
// namespace.
//
// It doesn't know clients, nor when something is to be told; Recent says of what
// happens often whether it was told lately.
//
// A recorder takes two events for one that differ in their notes alone, and shows
// the first one's note. So what an event is about stands in its reason, in the
// path of its object, which names the resource, and in its related object, which
// is the namespace.
package events
