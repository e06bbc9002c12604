// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package comparison asks whether the tools tell the truth: what `kubectl crq fit` and preflight say of a workload is
// compared with the objects that Kubernetes' controllers then create, and what `kubectl crq why` says after that with
// what came of them.
//
//   - Cases generates a workload, everything that decides whether it fits, and the pods that live already.
//   - A Cluster admits the objects that the controllers would make of it, one after another: by Kubernetes' own admission
//     plugins, internal/evaluation and the ledger. It has no arithmetic of its own.
//   - Said holds the claims of a warning.
//   - Outcome.Disproves, Outcome.DisprovesFit and Outcome.DisprovesWhy name each claim that isn't true.
//
// The test of this package plays a thousand cases in a Cluster. The suite test/preflight plays some of the same cases on a
// real API server with the real controllers, judges by the same functions, and asks why, too. A failure prints the seed of its case.
//
// A Cluster's pods are ready at once, and a Cluster tries nothing twice. Only pods of a Job end. All pods that a rollout
// replaces have one template.
package comparison
