// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testdata has comments that break rules, also where a sentence goes
// over two lines. What is written here is found. The entry is
// to be written.
package testdata

// isFull tells whether a limit is reached.
//
//	What is an example is no prose.
func isFull() string {
	// The limit is of what
	// is counted. A second sentence may say what is counted.
	return "What is in a string is no comment." // What ends a line is one.
}
