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

// Package suite is what the suites under test/ that run the operator on a real API
// server have in common: how specs are run and how long they wait, the build of what
// they test, what config/default installs and who the operator is by it, and a look at
// what the operator logged.
//
// It has functions alone. BeforeSuite, AfterSuite and the other nodes stand in the
// suites: one at the top level of an imported package would be a node of every suite.
// What goes wrong in a function fails the spec, at the line that calls it.
package suite
