// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespaces knows which quotas cover a namespace at this moment. It
// follows the ClusterResourceQuotas and the namespaces' labels by watches of
// its own, which take a list at once, and reads live on demand.
//
// Memory and Search are pure: they make no calls, and the time is an argument. The
// simulation runs them. Index follows the API server with a Memory, and makes
// the steps of a Search.
//
// Invariant: all that is said to be known up to a resourceVersion is known.
package namespaces
