// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package limited knows what is limited by default: resources, priority classes
// and other scopes that may be consumed only where some quota covers them.
//
// It reads and validates the file that names them, which is the configuration
// of kube-apiserver's own ResourceQuota plugin. It doesn't know quotas,
// namespaces or requests: internal/evaluation judges those.
//
// Invariant: a file that is accepted means here what it means to kube-apiserver.
// What kube-apiserver would take and then ignore, or match with other objects
// than the file says, is an error.
package limited
