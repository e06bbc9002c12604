// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sharedread lets callers share reads of the API server. Each gets the outcome of
// a read that began after its call, so it is as fresh as one of the caller's own, however
// many callers there are: at most one read of a key is under way, and one waits.
//
// The package doesn't know what is read.
package sharedread
