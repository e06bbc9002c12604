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

// Package usage is the controller that counts. For each ClusterResourceQuota it
// defines what is counted, and watches the resources that are limited. It doesn't
// settle: the quotas' machines do, by the count that a Counter gives them.
//
// It looks after the ledgers. It makes each quota's, and makes good one that somebody
// deleted or edited: see Recovery. It drops reservations whose life has ended and whose
// objects a live look doesn't find. It has quotas counted anew (Recounts), and finds out
// what namespaces brought that came under a quota (Joins).
//
// Only the leader counts. Every change of a count, of a ledger or of a quota
// asks for a reconcile of that quota; those that come while one is under way
// are merged by the work queue.
package usage
