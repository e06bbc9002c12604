// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package quotas is the webhook that validates ClusterResourceQuotas: what the
// schema can't express, in the words in which Kubernetes validates a
// ResourceQuota. It also warns of what is legal and probably wrong.
//
// An edit that lowers a limit is allowed only once the lower limit is in the quota's
// ledger: see Fences.
//
// Warnings are about what a request changes, in at most ten lines, within a second. They are
// advice: no warning refuses a quota, and one line names what couldn't be found out in time.
// A dry run is also told what the quota would do: which namespaces it selects, what they use
// above its limits, which other quotas limit the same, and what its mode means. So
// kubectl apply --dry-run=server shows the effect of a quota before it has any.
//
// What the warnings need to know comes through interfaces; Lookup is the one that reads live.
package quotas
