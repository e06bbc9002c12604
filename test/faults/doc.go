// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faults shows that the limit holds, and that nothing is lost or stuck,
// while what the operator stands on breaks: replicas are killed, paused and
// restarted, leadership moves, the API server restarts, the writes of ledgers
// meet conflicts, time-outs and lost replies, somebody deletes or edits ledgers,
// watches break and are late, and the replicas' clocks differ.
//
// One control plane and three replicas, as processes of their own, serve the whole
// suite. The replicas run as in a cluster: with the Deployment's arguments and the
// rights of its ServiceAccount, behind their Service, in a network namespace that the
// suite makes. Where none can be made, it fails. Each reaches the API server through a
// proxy that injects faults; the clocks of two are an hour ahead and behind. Each spec has a
// world of its own: namespaces, quotas that overlap, and clients that always want more
// than these allow. Every verdict on quotas is the judge's, who reads etcd and knows
// nothing of the operator.
//
// While replicas share the limit or are replaced, and in the storm, the quotas have surge, and half of the pods look as
// if a controller had created them in a rollout. No pod replaces another one, so the judge must see none of the surge taken.
//
// One spec plays how a limit is tried: beside a quota that refuses, a second one on the same selector audits a smaller limit.
// It must refuse nothing, tell what it would have refused, and leave the first one exactly what that allows, also while it
// begins to count and while its ledger is lost.
//
// Package restore shows the same of clusters that are put back to backups.
//
// What clients met is judged too: 409 and 5xx are failures, but where the call
// of a webhook was under way to a replica that ended or was paused at that
// moment, which no webhook can help; and while the API server is away.
//
// Environment:
//
//   - KUBEBUILDER_ASSETS: where the control plane's binaries are.
//   - MANAGER_BINARY: the operator to test. Without it one is built, with the
//     race detector when the tests themselves are.
//   - FAULTS_SEED: what all randomness begins with. Calls are concurrent, so
//     that it makes for the same faults, not for the same interleaving.
//   - FAULTS_DURATION: how long faults go on, in rounds; as for go test's
//     -timeout. The short form is one round.
//   - FAULTS_KEEP: not empty, the cluster's directory with all logs is kept.
package faults
