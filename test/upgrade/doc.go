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

// Package upgrade shows on a real API server what happens to quotas, ledgers and
// statuses while the operator is upgraded, rolled back, removed and installed again.
//
// Releases are builds of this tree. Two stand for the next two releases, in which the
// encoding of ledgers is raised as docs/upgrade.md says: one reads the new encoding,
// and the one after it writes it. What is installed is what config/default builds;
// replicas are processes behind a balancer, with the rights of its ServiceAccount.
//
// Environment: KUBEBUILDER_ASSETS and MANAGER_BINARY, as for package e2e.
package upgrade
