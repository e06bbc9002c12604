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

// Package quotas is the webhook that validates ClusterResourceQuotas: what the
// schema can't express, in the words in which Kubernetes validates a
// ResourceQuota. It also warns of what is legal and probably wrong.
//
// An edit that lowers a limit is allowed only once the lower limit is in the quota's
// ledger: see Fences.
//
// Warnings are about what a request changes. They are advice: what can't be
// found out in time is not warned of, and no warning refuses a quota. What they
// need to know comes through interfaces; Lookup is the one that reads live.
package quotas
