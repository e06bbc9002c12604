// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proxy stands between one replica of the operator and the API server,
// and does to the replica's calls what networks, other writers and a busy
// etcd do: conflicts, lost replies, failures, delays, broken and late watches.
//
// It serves plain HTTP on loopback and calls the API server as admin. Nothing
// is made up that a real API server couldn't answer: a conflict is provoked by
// another write, and what is called lost was really written. What happens to
// which call is drawn from a seed; calls are concurrent, so that the same seed
// makes for the same mixture, not for the same sequence.
package proxy
