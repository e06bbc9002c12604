// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wake shows on a real API server, with the real kube-controller-manager and two replicas of the operator,
// that workloads whose objects a quota refused get them as soon as there is room, without the pause that their
// controllers would make, and that as many are woken as fit.
//
// All workloads are refused for as long as it takes their controllers to pause for tens of seconds. The specs
// share that time: each has its own quota and namespaces, which are made before the first spec. make bench-scale
// with -wake lets more workloads wait longer.
//
// Environment: KUBEBUILDER_ASSETS and MANAGER_BINARY, as for package e2e. Like test/production, it needs a
// network namespace.
package wake
