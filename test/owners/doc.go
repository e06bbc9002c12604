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

// Package owners shows on a real API server with RBAC what the people of a namespace
// may see of the quotas that it is under, and what they may do: who reads local views,
// and that a project owner writes ResourceQuotas of the agreed names and no other.
// What is installed is what config/default builds; people are users whom RBAC lets do
// what their role says, and nothing more.
// Environment: KUBEBUILDER_ASSETS and MANAGER_BINARY, as for package e2e.
package owners
