// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rights shows on a real API server that the operator has the rights it
// needs and no others: it runs as the ServiceAccount of config/default, with RBAC
// on, through all that it does, and the API server's audit log tells what it asked
// for. Nothing of that may be forbidden, and every right it is given must be used. So it
// is without the line of config/rbac that lets it read Secrets, too, but for what it then
// can't count, and without the right to wake workloads, if it is told not to.
//
// Environment: KUBEBUILDER_ASSETS and MANAGER_BINARY, as for package e2e.
package rights
