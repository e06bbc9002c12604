// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package olm installs the OLM bundle on a real API server as OLM would, and has
// the operator do its work with nothing else.
//
// OLM itself runs in package live alone, because it takes many minutes to build.
// Here installation.go makes what OLM makes of a ClusterServiceVersion: the
// ServiceAccount, the ClusterRoles of its permissions, and the objects beside it, in
// a namespace of the administrator's choice. The operator is a process for each
// replica of the Deployment, with its arguments, its environment and the token of its
// ServiceAccount. Only the ports are others, and the API server finds them through
// the bundle's Service.
//
// Environment: KUBEBUILDER_ASSETS and MANAGER_BINARY, as for package e2e. OLM's own
// CustomResourceDefinitions come from the Go module that hack/release names. The
// machine needs an address that is no loopback: endpoints of a Service can't be one.
package olm
