// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package protection shows on a real API server that nobody but the operator writes
// ledgers and local views, whatever RBAC allows, that the operator and Kubernetes'
// own controllers can all the same, and that what was installed can be removed.
//
// What is installed is what config/default builds, and the operator, a process of
// its own, is the ServiceAccount in it, with the rights that it is given there.
//
// Environment: KUBEBUILDER_ASSETS and MANAGER_BINARY, as for package e2e.
package protection
