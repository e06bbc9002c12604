// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifests reads manifests as kubectl apply does: from files, directories,
// URLs, standard input and kustomizations; and tells what resource each object is,
// and in which namespace it goes.
//
// It asks the cluster for nothing but the names of resources, and works for kinds
// that the cluster doesn't serve yet.
package manifests
