/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

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
