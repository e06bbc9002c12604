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

// Package rights shows on a real API server that the operator has the rights it
// needs and no others: it runs as the ServiceAccount of config/default, with RBAC
// on, through all that it does, and the API server's audit log tells what it asked
// for. Nothing of that may be forbidden, and every right it is given must be used. So it
// is without the line of config/rbac that lets it read Secrets, too, but for what it then
// can't count.
//
// Environment: KUBEBUILDER_ASSETS and MANAGER_BINARY, as for package e2e.
package rights
