// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package counting keeps the use of every quota by every selected namespace, up
// to date with each event in constant time.
//
// It holds a small record for each object of each counted resource, and a
// slice for each quota and namespace. A Source takes the events of one
// resource in the order of the API server's watch; SetNamespace and Define take
// namespaces and quotas. Read gives one quota's figures, and which objects they
// include, of one instant. The package knows no client, goroutine or log; the
// time is an argument.
//
// The cost of an event doesn't depend on how many objects are counted. Only
// changes of many of them cost more: relabelling a namespace grows with its
// objects, a new target with those of its namespaces, a list with those of its
// resource. An audit is as much, in turns of one namespace.
//
// Balance adds up a quota: the sum of its count and its ledger, with each object
// either among the used or among the reserved. Count and ledger change apart, and
// an object is counted up to 160 ms before the ledger settles its reservation. So
// the ledger is settled by the count first, in a draft that is never stored.
//
// Invariants:
//
//   - a quota's total is the sum of its slices, and a slice is the sum of the
//     records in its namespace;
//   - a record is changed, and its slices with it, under one lock: no reader
//     sees an object without its usage, nor usage without its object;
//   - a source's version never exceeds its records, and never falls behind the
//     newest of them.
package counting
