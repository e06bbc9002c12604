// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serving serves the webhooks: where they listen, by which certificate, how the API server reaches them, and
// which callers they answer.
//
// Callers tells API servers from all others by the token in the path. The leader exchanges the
// token in the webhook configuration alone. A token that was removed from it is accepted for a
// minute, and a new one at once, because the configuration is read live if need be.
//
// Connections without an accepted token are bounded (strangers), and the bodies of all others (guard).
//
// A certificate comes from a Secret that all replicas share (Secret, renewed by Issuer), from a
// Directory that the installation provides, or is made for the life of the process. The
// Controller runs in every replica: each presents the newest certificate, and any may renew it.
//
// Certificates exchanges one certificate for another so that no caller notices:
//
//  1. The new certificate's authority is added to the Bundle; the old one stays.
//  2. The leader writes its Bundle to the webhook configuration, which then trusts the new
//     certificate.
//  3. Some seconds later, when every API server has seen that, the new certificate is presented.
//  4. An hour later the old authority is removed.
//
// Invariants:
//
//   - No handler sees a stranger's request.
//   - A trusted certificate is never replaced by an untrusted one.
//
// cert-controller, which others use for this, makes RSA keys alone, needs the Secret to exist
// and to be mounted, reads every Secret of the namespace, gives its calls no deadline, and stops
// trusting the old authority as soon as there is another.
package serving
