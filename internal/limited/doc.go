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

// Package limited knows what is limited by default: resources, priority classes
// and other scopes that may be consumed only where some quota covers them.
//
// It reads and validates the file that names them, which is the configuration
// of kube-apiserver's own ResourceQuota plugin. It doesn't know quotas,
// namespaces or requests: internal/evaluation judges those.
//
// Invariant: a file that is accepted means here what it means to kube-apiserver.
// What kube-apiserver would take and then ignore, or match with other objects
// than the file says, is an error.
package limited
