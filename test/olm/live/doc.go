// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package live installs, upgrades and removes the operator through the Operator Lifecycle Manager
// itself, on a real control plane.
//
// OLM's two operators run as processes, and opm serves the catalog. The catalog holds the bundles
// themselves, where a published one names their images, because nothing here could pull an image.
// The operator's pods are processes, too, and a stand-in for the kubelet makes them ready.
//
// Environment: KUBEBUILDER_ASSETS and MANAGER_BINARY, as for package e2e; OLM_BINARIES is the
// directory of olm, catalog and opm, RELEASE_BINARY hack/tools/release and KUSTOMIZE_BINARY kustomize.
// make test-olm builds and names all of them. The suite has a network namespace of its own,
// because OLM listens at fixed ports.
package live
