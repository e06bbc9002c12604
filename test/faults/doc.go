// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faults shows that the limit holds, and that nothing is lost or stuck,
// while what the operator stands on breaks: replicas are killed, paused and
// restarted, leadership moves, the API server restarts, the writes of ledgers
// meet conflicts, time-outs and lost replies, watches break and are late, and
// the replicas' clocks differ.
//
// One control plane and three replicas, as processes of their own, serve the whole
// suite. The replicas run as in a cluster: with the Deployment's arguments and the
// rights of its ServiceAccount, behind their Service, in a network namespace that the
// suite makes. Where none can be made, it fails. Each reaches the API server through a
// proxy that injects faults; the clock of the second is 20 s ahead. Each spec has a
// world of its own: namespaces, quotas that overlap, and clients that always want more
// than these allow. Every verdict on quotas is the judge's, who reads etcd and knows
// nothing of the operator.
//
// In a storm, what is configured moves too: quotas come, shrink and go, namespaces are
// relabelled between quotas, a custom resource changes the version that is served, and
// one replica's watches are held back while others hear. Then a commit above the limit
// may be excused, by the exceptions of package judge and no others: the suite knows when
// each request was sent, when each edit was answered, when no leader heard anything, and
// by what ledgers held whether the API server asked about a request at all.
//
// With the move "modes", a storm has four more quotas: one in the mode Warn, one in Audit, one that is switched between
// Audit and Deny, and one that admits while nobody can decide. Clients of a quota that refuses nothing must never be
// refused, whatever breaks. Once a switch to Deny is answered, the limit binds. A commit above the limit is excused if the
// quota admits what nobody can decide, and its ledger held nothing for it.
//
// What clients met is judged too: 409 and 5xx are failures, but where the call
// of a webhook was under way to a replica that ended or was paused at that
// moment, which no webhook can help; and while the API server is away.
//
// Environment:
//
//   - KUBEBUILDER_ASSETS: where the control plane's binaries are.
//   - MANAGER_BINARY: the operator to test. Without it one is built, with the
//     race detector when the tests themselves are. That with the wrong clock is
//     always built.
//   - FAULTS_SEED: what all randomness begins with. Calls are concurrent, so
//     that it makes for the same faults, not for the same interleaving.
//   - FAULTS_DURATION: how long faults go on, in rounds; as for go test's
//     -timeout. The short form is one round.
//   - FAULTS_MOVES: which of the moves of a storm are made, by the names in
//     moves_test.go with commas between them. "all" for all; by default none.
//   - FAULTS_KEEP: not empty, the cluster's directory with all logs is kept.
package faults
