// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"testing"
)

func BenchmarkDisjoint(b *testing.B) {
	cases := adversaries()
	for i := range 500 {
		team, tier := fmt.Sprint("team=", i), fmt.Sprint("tier=", i%5)
		cases["one label"] = append(cases["one label"], podsOf(team))
		cases["one label and three sets of rules"] = append(cases["one label and three sets of rules"],
			wanting(fmt.Sprint("rule", i%3), withLabels(team)))
		cases["two labels"] = append(cases["two labels"], podsOf(team, tier))
		cases["two labels, all pairs"] = append(cases["two labels, all pairs"], podsOf(fmt.Sprint("team=", i/5), tier))
	}
	for name, areas := range cases {
		owned(areas...)
		b.Run(name, func(b *testing.B) {
			var entries []Entry
			for b.Loop() {
				entries, _ = Disjoint(areas, []string{"kube-system", "operator"}, upTo(32))
			}
			b.ReportMetric(float64(len(entries)), "entries")
			b.ReportAllocs()
		})
	}
}
