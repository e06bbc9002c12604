// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package counting keeps what every selected namespace uses of every quota,
// up to date with each event in constant time.
//
// It holds a small record for each object of each counted resource, and a
// slice for each quota and namespace. A Source takes the events of one
// resource in the order of the API server's watch; SetNamespace and Define take
// namespaces and quotas. Read gives one quota's figures, and which objects they
// include, of one instant. The package knows no client, goroutine or log; the
// time is an argument.
//
// What an event costs doesn't depend on how many objects are counted. Only what
// concerns many of them does: relabelling a namespace grows with its objects, a
// new target with those of its namespaces, a list with those of its
// resource. An audit is as much, in turns of one namespace.
//
// Balance adds up a quota: what its count and its ledger say together, with
// each object either in what is used or in what is reserved. Count and ledger change
// apart, and an object is counted up to 160 ms before the ledger settles its
// reservation. So the ledger is settled by the count first, in a draft that nobody stores.
//
// Invariants:
//
//   - a quota's total is the sum of its slices, and a slice is the sum of what
//     the records in its namespace use;
//   - a record is changed, and its slices with it, under one lock: no reader
//     sees an object without its usage, nor usage without its object;
//   - a source's version never exceeds what its records show, and never falls
//     behind the newest of them.
package counting
