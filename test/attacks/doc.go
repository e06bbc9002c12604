// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package attacks tries what a pod that reaches the operator's port, or somebody who has
// stolen the token, can do. If an attack might fail for another reason, its spec also shows
// that it succeeds with what the attacker lacks.
//
// The operator runs as in a cluster: replicas behind their Service, with the rights of
// their ServiceAccount.
//
// Environment: KUBEBUILDER_ASSETS and MANAGER_BINARY, as for package e2e.
package attacks
