// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package localview is the controller that projects each quota into the
// namespaces that share it, as a LocalResourceQuota: the totals, and the
// namespace's own part, and nothing of any other namespace.
package localview
