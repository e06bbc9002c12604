// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhookconfig says what the webhook has to be called for: the rules and
// entries of a ValidatingWebhookConfiguration that cover what quotas limit, and
// whether a given configuration covers it.
//
// The path of an entry has two things to say. Of one that enforces, it is a
// Question: which quotas the entry was generated from, and from which specs of
// theirs. Of the one for probes, it is the Edition: which write of the
// configuration it is. Proofs concludes from the editions that the API server is
// seen to ask by, whether it asks about all that a quota limits.
//
// Others may edit the configuration. Editor returns who did.
//
// Invariants:
//
//   - An entry's Epoch is a resourceVersion at which all specs that it was
//     generated from were there, and it never falls.
//   - No two writes of the configuration are of the same Edition.
//   - A quota is Proved only if the API server was seen to ask by a configuration
//     that covers its present spec, and no configuration since has failed to.
package webhookconfig
