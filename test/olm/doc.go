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

// Package olm installs the OLM bundle on a real API server as OLM would, and has
// the operator do its work with nothing else.
//
// OLM itself doesn't run here. What it makes of a ClusterServiceVersion is made
// by installation.go: the ServiceAccount, the ClusterRoles of its permissions, and
// the objects beside it, in a namespace of the administrator's choice. The operator
// is a process for each replica of the Deployment, with its arguments, its
// environment and the token of its ServiceAccount. Only the ports are others, and
// the API server finds them through the bundle's Service.
//
// Environment: KUBEBUILDER_ASSETS and MANAGER_BINARY, as for package e2e. OLM's own
// CustomResourceDefinitions come from the Go module that hack/bundle names. The
// machine needs an address that is no loopback: endpoints of a Service can't be one.
package olm
