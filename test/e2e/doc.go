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

// Package e2e shows on a real API server what the operator promises: that what
// the selected namespaces hold together is counted and can't exceed the quota.
//
// One control plane and one operator, as a process of its own, serve the whole
// suite. Each spec has namespaces, a label and quotas of its own (see team), so
// that specs don't meet; what they need of the cluster beyond that (a custom
// resource, priority classes) is made once, before all of them.
//
// Environment:
//
//   - KUBEBUILDER_ASSETS: where the control plane's binaries are.
//   - MANAGER_BINARY: the operator to test. Without it one is built, with the
//     race detector when the tests themselves are.
package e2e
