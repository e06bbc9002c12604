// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package harness runs the real parts of the system on loopback: etcd,
// kube-apiserver, kube-controller-manager, the operator's binary and kubectl,
// each a process of its own. Tests, the demo and benchmarks share it.
//
// A Cluster owns one temporary directory, in which everything is written, and
// every process that it starts. Stop ends them and removes the directory.
//
// A replica runs in one of two forms. StartOperator runs it on loopback, where the API
// server calls it by a URL. Production runs it as its Deployment would run in a cluster,
// behind its Service; that needs InNamespace.
//
// The package knows nothing of quotas. The control plane's binaries come from
// KUBEBUILDER_ASSETS or bin/k8s below the repository's root. The operator's is
// bin/manager, or what OperatorBinary finds or builds.
//
// Invariants:
//
//   - No process outlives the program that started it, however that program
//     ends: a watchdog notices, kills what is left and removes the directory.
//     All that stays is envtest's: empty files in the user's cache directory
//     that reserve ports for two minutes, which its next use removes.
//   - A context given to a Start function bounds the start alone. What has
//     started runs until it is stopped.
//   - An error about a process carries the last lines of its log, because the
//     log itself is gone once the cluster is stopped.
package harness
