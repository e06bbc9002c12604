// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probe answers the operator's own probes: with the edition of the webhook
// configuration that the API server asked by. It knows nothing of quotas.
package probe
