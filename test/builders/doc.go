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

// Package builders makes the objects that tests and benchmarks create, in the
// fewest words: builders.Quota("team").Hard("cpu", "10").Obj().
//
// Every object is complete: the API server accepts it as it is. Obj returns the
// object that was built, not a copy; a builder is used once. A quantity that
// can't be parsed panics.
package builders
