// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package definition turns a ClusterResourceQuota into what the domain works
// with: limits for the ledger, a quota for evaluation, a selector of
// namespaces. It is where a spec is validated, in the words of Kubernetes' own
// validation of ResourceQuota.
package definition
