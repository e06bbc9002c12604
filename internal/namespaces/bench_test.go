// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package namespaces

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
