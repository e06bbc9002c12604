// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reading reads from the cluster what the question needs whether
// something fits: the limits of namespaces, what is there of the manifests
// already, and what admission goes by.
//
// It asks with the rights of whoever runs the command, and writes nothing. What
// they may not read is told as such, where the answer can do without.
package reading
