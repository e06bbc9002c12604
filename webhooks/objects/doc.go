// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objects is the webhook that enforces quotas: it is asked about every
// object whose creation or change some quota may limit, charges all quotas that
// cover the object's namespace, or none, and answers.
//
// Package admission names the next look, wait or charge before a request is answered.
// Handler.decide does it, and charge.go charges the ledgers.
//
// If anything goes wrong, the answer is a refusal: a request that isn't granted is not admitted.
package objects
