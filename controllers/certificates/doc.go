// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certificates is the controller that gives this replica the newest
// certificate of its webhooks, and renews the Secret that it is kept in. It
// runs in every replica: each presents the certificate, and any may renew it.
package certificates
