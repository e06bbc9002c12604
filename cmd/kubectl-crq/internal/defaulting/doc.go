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

// Package defaulting makes of an object what the API server makes of it before
// quotas are charged: Kubernetes' own defaults, and what admission adds. It does so
// with Kubernetes' own code: the defaults of the API types, the plugin of
// LimitRanges, and the rules of default priority and storage classes and of a
// runtime class's overhead.
//
// It doesn't know what webhooks add, where a cluster has any: nobody can tell
// without asking them.
//
// It knows no client. Types and Rules don't change after they were made, and
// what is passed in is not changed.
package defaulting
