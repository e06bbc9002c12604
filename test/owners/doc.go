// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package owners shows on a real API server with RBAC what the people of a namespace
// may see of the quotas that it is under, and what they may do: who reads local views,
// and that a project owner writes ResourceQuotas of the agreed names and no other.
// What is installed is what config/default builds; people are users whom RBAC lets do
// what their role says, and nothing more.
// Environment: KUBEBUILDER_ASSETS and MANAGER_BINARY, as for package e2e.
package owners
