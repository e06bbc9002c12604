// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package helm renders the chart in charts/ with the real helm, and installs, upgrades and
// uninstalls it on a real API server, with the commands of the documentation.
//
// No node is there to run pods. Each replica is a process with the arguments, the environment
// and the ServiceAccount's token of the Deployment that the chart renders, and the API server
// finds it through the chart's Service. The release before is a copy of the chart, with older
// definitions; this release's binary runs by it, and the next one's by the chart as it is.
//
// Environment: KUBEBUILDER_ASSETS and MANAGER_BINARY, as for package e2e. HELM_BINARY is the
// path of helm; it is built if that is unset. Like test/production, it needs a network
// namespace.
package helm
