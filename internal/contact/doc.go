// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package contact knows when the API server last answered this process. A replica
// that it doesn't answer knows nothing of what changes, so it must neither be asked
// nor keep anybody waiting.
package contact
