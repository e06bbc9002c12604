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

// Package driver runs the machines of all quotas: it has the goroutines, the clock, the
// Store and the count that package machine does without.
//
// A Group hands each charge to its quota's machine and waits for the answer. What a
// machine asks for is done at once, but for calls of the Store: each has a goroutine of
// its own, and its reply is the machine's next event.
//
// The package knows no Kubernetes client and nothing of admission.
package driver
