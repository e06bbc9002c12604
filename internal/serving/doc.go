// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serving says where and with which certificate the webhooks are
// served, how the API server reaches and trusts them, and whom they answer.
//
// A certificate comes from a Secret, from a directory, or is made for the life
// of the process. Certificates exchanges one for another so that no caller
// notices:
//
//  1. The new certificate's authority is added to the Bundle; the old one stays.
//  2. The webhook configuration of the cluster, which the leader writes from its
//     Bundle, trusts the new certificate.
//  3. Some seconds later, when every API server has seen that, it is presented.
//  4. An hour later the old authority goes.
//
// Callers tell API servers from all others by the token in the path, which the leader
// exchanges in the webhook configuration alone. A token that left it is accepted for a
// minute, and one that is new in it at once, because it is read live if need be.
//
// Invariants: a certificate that is trusted is never replaced by one that isn't; no handler
// sees a stranger's request.
package serving
