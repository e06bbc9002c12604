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

// Package manifests reads manifests as kubectl apply does: from files, directories,
// URLs, standard input and kustomizations; and tells what resource each object is,
// and in which namespace it goes.
//
// It asks the cluster for nothing but the names of resources, and works for kinds
// that the cluster doesn't serve yet.
package manifests
