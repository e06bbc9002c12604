// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package exchange has the replicas tell each other what each of them knows. Each publishes its own part as a ConfigMap in
// the operator's own namespace, and follows those of the others. The leader takes over the parts of replicas that have gone,
// so that nothing that was published is lost when replicas restart.
//
// It doesn't know what a part says: a Content does. Enforcement knows nothing of this package.
package exchange
