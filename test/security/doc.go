// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package security shows who may do what around the operator, as it runs in a cluster:
// replicas of the Deployment of config/default, behind their Service, with the rights of
// their ServiceAccount. All parts share one control plane, and have namespaces and quotas
// of their own. A label selects a part, such as with -ginkgo.label-filter=rights:
//
//   - attacks: what a pod that reaches the operator's port, or a thief of the token, can
//     do. If an attack might fail for another reason, its spec also shows that it succeeds
//     with what the attacker lacks.
//   - owners: what the people of a namespace may see of the quotas that it is under, and
//     that a project owner writes ResourceQuotas of the agreed names and no other.
//   - protection: that nobody but the operator writes ledgers and local views, whatever
//     RBAC allows, that the operator and Kubernetes' own controllers can all the same, and
//     that what was installed can be removed.
//   - rights: that the operator has the rights it needs and no others. The API server's
//     audit log has all that it asked for. Nothing of that may be forbidden, and every
//     right that it is given must be used. So it is without the right to read Secrets,
//     except for what it then can't count, and without the right to wake workloads.
//
// Environment: KUBEBUILDER_ASSETS and MANAGER_BINARY, as for package e2e. Like
// test/production, it needs a network namespace.
package security
