// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhookconfig is the controller that keeps the ValidatingWebhookConfiguration
// as wide as the quotas ask for, and no wider, and exchanges the token by which the API
// server calls.
package webhookconfig
