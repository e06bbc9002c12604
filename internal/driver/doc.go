// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package driver runs the machines of all quotas: it has the goroutines, the clock, the
// Store and the count that package machine does without.
//
// A Group hands each charge to its quota's machine and waits for the answer. A
// machine's effects are carried out at once, but for calls of the Store: each has
// a goroutine of its own, and its reply is the machine's next event.
//
// The package knows no Kubernetes client and nothing of admission.
package driver
