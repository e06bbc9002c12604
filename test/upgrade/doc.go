// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgrade shows on a real API server what happens to quotas, ledgers and
// statuses while the operator is upgraded, rolled back, removed and installed again.
//
// Releases are builds of this tree. Two stand for the next two releases, in which the
// encoding of ledgers is raised as docs/upgrade.md says: one reads the new encoding,
// and the one after it writes it. What is installed is what config/default builds;
// replicas are processes behind its Service, with the rights of its ServiceAccount.
//
// Environment: KUBEBUILDER_ASSETS and MANAGER_BINARY, as for package e2e. Like
// test/production, it needs a network namespace.
package upgrade
