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

// Package conversion turns the shared quotas of others into
// ClusterResourceQuotas: OpenShift's ClusterResourceQuota, HNC's
// HierarchicalResourceQuota, and what Capsule's Tenant, ResourcePool and
// GlobalResourceQuota say of quotas.
//
// Invariants:
//   - Whatever the input says is in a quota of the output or in a comment. Each
//     field is known by its path; what a conversion takes is crossed off, and what
//     is left at the end was not carried over.
//   - A quota that comes out is valid. What would not be is a comment.
//   - The same input gives the same output, in the order of the input.
//
// It knows text: what is in files, and neither files nor clusters.
package conversion
