// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package builders makes the objects that tests and benchmarks create, in the
// fewest words: builders.Quota("team").Hard("cpu", "10").Obj().
//
// Every object is complete: the API server accepts it as it is. Obj returns the
// object that was built, not a copy; a builder is used once. A quantity that
// can't be parsed panics.
package builders
