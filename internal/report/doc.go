// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report has the words and figures in which people are told of a quota: the summary of
// its use, the levels that it reaches, and one constructor for each event, on the quota for its
// administrator, and on a namespace's view of it for the namespace's owner. An event on a view
// names no other namespace.
//
// Refusals alone has clients and goroutines: it writes the events of refused requests. Other events are
// written by the packages that know when.
//
// A recorder takes two events for one if they differ in their notes alone, and shows the first
// one's note. So the subject of an event is in its reason, in the path of its object, which names
// the resource, and in its related object, which is the namespace.
package report
