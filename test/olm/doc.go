// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package olm installs the OLM bundle on a real API server as OLM would, and has
// the operator do its work with nothing else.
//
// OLM itself runs in package live alone, because it takes many minutes to build.
// Here installation.go makes what OLM makes of a ClusterServiceVersion: the
// ServiceAccount, the ClusterRoles of its permissions, and the objects beside it, in
// a namespace of the administrator's choice. The operator is a process for each
// replica of the Deployment, behind the bundle's Service.
//
// Environment: KUBEBUILDER_ASSETS and MANAGER_BINARY, as for package e2e. OLM's own
// CustomResourceDefinitions come from the Go module that hack/tools/release names. Like
// test/production, it needs a network namespace.
package olm
