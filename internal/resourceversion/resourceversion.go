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

// Package resourceversion compares resourceVersions. The API server guarantees
// that those of its own and of custom resources are decimal numbers that grow
// with every write (k8s.io/apimachinery/pkg/util/resourceversion).
package resourceversion

import "strconv"

// Parse returns the resourceVersion as a number; zero, which is older than
// every write, for what isn't one.
func Parse(resourceVersion string) uint64 {
	number, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return number
}
