// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e shows on a real API server what the operator promises: that what
// the selected namespaces hold together is counted and can't exceed the quota.
//
// One control plane and one operator, as a process of its own, serve all specs of one
// process: with go test the whole suite, with ginkgo (make test-long) a part of it. Each
// spec has namespaces, a label and quotas of its own (see team), so that specs don't meet;
// what they need of the cluster beyond that (a custom resource, priority classes) is made
// once, before all of them. A spec that asks for more than a part of the machine, or tells
// how often something is done in a time, is Serial: it runs when the other processes are
// done.
//
// Environment:
//
//   - KUBEBUILDER_ASSETS: where the control plane's binaries are.
//   - MANAGER_BINARY: the operator to test. Without it one is built, with the
//     race detector when the tests themselves are.
package e2e
