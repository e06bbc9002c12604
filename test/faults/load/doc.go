// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package load is what people and controllers do to a cluster at the limit of
// their quotas: clients that create, delete, update and resize objects of
// their own, in many namespaces at once, each with a randomness of its own.
//
// Every call has a deadline and is entered in a Tally with how it ended. What a
// client may meet is written down in Outcome; what it may meet only while
// something is broken is held against the Disruptions of that time.
//
// The package doesn't judge quotas: it never adds up what lives.
package load
