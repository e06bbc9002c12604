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

// Package production shows that the operator enforces quotas in the form in which it
// runs in a cluster: two replicas of the Deployment of config/default, with its
// arguments, its ServiceAccount's token, leader election, roles and policies. The API
// server reaches them through the Service, by what its EndpointSlice says.
//
// The suite runs in a network namespace of its own. Where none can be made, it fails.
//
// Environment: KUBEBUILDER_ASSETS and MANAGER_BINARY, as for package e2e.
package production
