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

// Package selection tells which quotas cover a namespace.
//
// A Selector is the compiled selector of one ClusterResourceQuota. The package
// knows labels and annotations and nothing else of a namespace: not its name,
// and not whether it exists.
//
// Invariants:
//
//   - No selector selects everything by being empty: an empty one does not
//     compile, and the zero Selector matches nothing.
//   - Equal selectors have the same String, whatever the order that they are
//     written in.
package selection
