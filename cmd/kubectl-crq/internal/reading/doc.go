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

// Package reading reads from the cluster what the question needs whether
// something fits: the limits of namespaces, what is there of the manifests
// already, and what admission goes by.
//
// It asks with the rights of whoever runs the command, and writes nothing. What
// they may not read is told as such, where the answer can do without.
package reading
