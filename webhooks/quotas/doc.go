// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package quotas is the webhook that validates ClusterResourceQuotas: what the
// schema can't express, in the words in which Kubernetes validates a
// ResourceQuota. It also warns of what is legal and probably wrong.
//
// An edit that lowers a limit is allowed only once the lower limit is in the quota's
// ledger: see Fences.
//
// Warnings are about what a request changes. They are advice: what can't be
// found out in time is not warned of, and no warning refuses a quota. What they
// need to know comes through interfaces; Lookup is the one that reads live.
package quotas
