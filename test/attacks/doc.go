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

// Package attacks tries what a pod that reaches the operator's port, or somebody who has
// stolen the token, can do. If an attack might fail for another reason, its spec also shows
// that it succeeds with what the attacker lacks.
//
// The operator runs as in a cluster: replicas behind their Service, with the rights of
// their ServiceAccount.
//
// Environment: KUBEBUILDER_ASSETS and MANAGER_BINARY, as for package e2e.
package attacks
