// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serving says where the webhooks are served, how the API server reaches them, and whom
// they answer.
//
// Callers tells API servers from all others by the token in the path. The leader exchanges the
// token in the webhook configuration alone. A token that was removed from it is accepted for a
// minute, and a new one at once, because the configuration is read live if need be.
//
// Connections without an accepted token are bounded (strangers), and the bodies of all others (guard).
//
// Invariant: no handler sees a stranger's request.
package serving
