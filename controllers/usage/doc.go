// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package usage is the controller that counts. For each ClusterResourceQuota it
// defines what is counted, and watches the resources that are limited. It doesn't
// settle: the quotas' machines do, by the count that a Counter gives them.
//
// It looks after the ledgers. It makes each quota's, and makes good one that somebody
// deleted or edited: see Recovery. It drops reservations whose life has ended and whose
// objects a live look doesn't find. It has quotas counted again (Recounts), and finds out
// what namespaces brought that came under a quota (Joins).
//
// LedgerController tells the machines of this process what other processes write, so that the
// next batch starts from it. It runs in every replica.
//
// Only the leader counts. A new one counts from scratch. Until its count has come as far as the
// ledger's (ledger.State.Counted), it settles nothing, and requests are judged by the use that the
// leader before it wrote.
//
// Every change of a count, of a ledger or of a quota asks for a reconcile of that quota; those that
// come while one is under way are merged by the work queue.
package usage
