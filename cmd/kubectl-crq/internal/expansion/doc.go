// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expansion tells what a manifest makes: the object itself, and the pods
// and claims that Kubernetes' controllers make of it.
//
// It knows how Deployments, StatefulSets, DaemonSets, ReplicaSets,
// ReplicationControllers, Jobs and CronJobs come to their pods, what pods have
// made for them, and what of it is there already. It doesn't know quotas, what
// anything costs, or clients.
//
// Invariants:
//
//   - Nothing is made once for each pod: 10,000 pods are one object and a number.
//   - Where it can't be exact it tells too much rather than too little, and says so.
//   - What is passed in is not changed.
package expansion
