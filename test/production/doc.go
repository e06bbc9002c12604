// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package production shows that the operator enforces quotas in the form in which it
// runs in a cluster: two replicas of the Deployment of config/default, with its
// arguments, its ServiceAccount's token, leader election, roles and policies. The API
// server reaches them through the Service, by what its EndpointSlice says. What takes
// more than one replica, or a connection that a test holds, is shown here.
//
// The suite runs in a network namespace of its own. Where none can be made, it fails.
//
// Environment: KUBEBUILDER_ASSETS and MANAGER_BINARY, as for package e2e.
package production
