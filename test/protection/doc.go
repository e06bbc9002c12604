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

// Package protection shows on a real API server that nobody but the operator writes
// ledgers and local views, whatever RBAC allows, that the operator and Kubernetes'
// own controllers can all the same, and that what was installed can be removed.
//
// What is installed is what config/default builds, and the operator, a process of
// its own, is the ServiceAccount in it, with the rights that it is given there.
//
// Environment: KUBEBUILDER_ASSETS and MANAGER_BINARY, as for package e2e.
package protection
