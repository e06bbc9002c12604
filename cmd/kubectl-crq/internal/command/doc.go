// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package command holds the commands of kubectl crq: their flags, what they read
// from the cluster, and how they end. What they compute and how it looks is in
// packages of its own.
//
// Commands only read. They work with the rights of whoever runs them: what an
// owner can't read is left out or said, never asked for again as somebody else.
package command
