// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package surge shows on a real API server, with the real kube-controller-manager and two replicas of the operator, that pods
// which replace others may take the surge of a full quota, that nobody else can, and that people are told.
//
// Environment: KUBEBUILDER_ASSETS and MANAGER_BINARY, as for package e2e. Like test/production, it needs a network
// namespace.
package surge
