// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package enforcement runs an operator without preflight, waiting and waking on a real API server, and shows that it
// enforces limits all the same.
package enforcement
