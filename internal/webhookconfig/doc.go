// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhookconfig computes the calls that the webhook needs: the rules and
// entries of a ValidatingWebhookConfiguration that cover the quotas' limits, and
// whether a given configuration covers them.
//
// The path of an entry has two things to say. The path of an enforcing entry has
// a Question: the quotas that the entry was generated from, and the versions of
// their specs. The path of the entry for probes has the Edition: which write of
// the configuration it is. Proofs concludes from the editions that the API server
// is seen to ask by, whether it asks about all that a quota limits.
//
// Others may edit the configuration. EditOf names the client that did.
//
// Invariants:
//
//   - An entry's Epoch is a resourceVersion at which all specs that it was
//     generated from were there, and it never falls.
//   - No two writes of the configuration are of the same Edition.
//   - A quota is Proved only if the API server was seen to ask by a configuration
//     that covers its present spec, and no configuration since has failed to.
package webhookconfig
