// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package issuing says when the webhook's certificate and its authority are to
// be renewed, and renews them. It knows the content of a Secret, and neither
// clients nor the clock.
//
// cert-controller, which others use for this, makes RSA keys alone, needs the Secret to exist
// and to be mounted, reads every Secret of the namespace, gives its calls no deadline, and has
// the old authority trusted no longer from the moment that there is another.
package issuing
