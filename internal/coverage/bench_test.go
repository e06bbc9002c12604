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

package coverage

import (
	"fmt"
	"testing"
)

// BenchmarkCovering is asked about a namespace in a cluster of 100, and of 100 quotas
// with one namespace each. Each request pays it.
func BenchmarkCovering(b *testing.B) {
	c := newCluster(b)
	for i := range 100 {
		c.quota(fmt.Sprint("quota", i), "5", fmt.Sprint("team=", i))
		c.label(fmt.Sprint("namespace", i), fmt.Sprint("team=", i))
	}
	c.watched()
	question := c.asked("namespace7")
	b.ReportAllocs()
	for b.Loop() {
		covered, err := c.index.Covering(b.Context(), question, "namespace7", 0)
		if err != nil || len(covered.Definitions) != 1 {
			b.Fatal(covered, err)
		}
	}
	if reads := c.whatWasRead(); len(reads) > 0 {
		b.Errorf("live reads: %q, want none", reads)
	}
}
