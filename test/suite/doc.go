// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package suite is what the suites under test/ that run the operator on a real API
// server have in common: how specs are run and how long they wait, the build of what
// they test, what config/default installs and who the operator is by it, and a look at
// what the operator logged.
//
// It has functions alone. BeforeSuite, AfterSuite and the other nodes stand in the
// suites: one at the top level of an imported package would be a node of every suite.
// What goes wrong in a function fails the spec, at the line that calls it.
package suite
