// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package usage is the controller that counts. For each ClusterResourceQuota it defines the target of the count, and
// watches the limited resources. It doesn't settle: the quotas' machines do, by the count that a Counter gives them.
//
// It looks after the ledgers. It makes each quota's, and replaces a ledger that was deleted or edited: see Recovery. It
// drops reservations whose life has ended and whose objects a live look doesn't find. It makes quotas be counted again
// (Recounts), and finds the objects of namespaces that came under a quota (Joins).
//
// LedgerController hands the machines of this process the writes of other processes, so that the next batch starts from
// them. It runs in every replica.
//
// Only the leader counts. A new one counts from scratch. Until its count has come as far as the
// ledger's (ledger.State.Counted), it settles nothing, and requests are judged by the use that the
// leader before it wrote.
//
// Every change of a ledger, of a quota or of the resources that are served asks for a reconcile of that quota; requests
// that come while one is under way are merged by the work queue. A change of a count concerns the quota's machine, which
// settles it, and Joins.
package usage
