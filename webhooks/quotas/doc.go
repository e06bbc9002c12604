// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package quotas is the webhook that validates ClusterResourceQuotas beyond the schema, in the words in which
// Kubernetes validates a ResourceQuota. It also warns of legal specs that are probably wrong.
//
// An edit that lowers a limit is allowed only once the lower limit is in the quota's
// ledger: see Fences.
//
// Warnings are about the changes of a request, in at most ten lines, within a second. They are advice: no warning
// refuses a quota, and one line names the questions that couldn't be answered in time. A dry run also shows the quota's
// effect: which namespaces it selects, how far their use is above its limits, which other quotas limit the same, and
// the meaning of its mode. So kubectl apply --dry-run=server shows the effect of a quota before it has any.
//
// The facts for the warnings come through interfaces; Lookup is the one that reads live.
package quotas
