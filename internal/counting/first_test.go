// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package counting

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The first list of namespaces is taken in another way than later ones.
func TestTheFirstListOfNamespacesCountsLikeALaterOne(t *testing.T) {
	teams := []string{"red", "blue", "none"}
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		list := []NamespaceLabels{{Name: "first", Version: 1}}
		for i := range random.IntN(8) {
			team := teams[random.IntN(len(teams))]
			list = append(list, NamespaceLabels{Name: fmt.Sprint("n", i), Version: uint64(2 + 2*i), Labels: map[string]string{"team": team}})
		}
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		var all [2]map[string]any
		for i, before := range [][]NamespaceLabels{nil, {{Name: "first", Version: 1}}} {
			count := newCount()
			count.Define(targetFor(t, "red"), start)
			count.Define(targetFor(t, "blue"), start)
			if before != nil {
				count.ReplaceNamespaces(before, 1, start)
			}
			if err := count.Source(pods).Set(podAt("n0", "a", "a", 5), start); err != nil {
				t.Fatal(err)
			}
			count.ReplaceNamespaces(list, 100, start.Add(time.Second))
			all[i] = map[string]any{}
			for _, quota := range []string{"red", "blue"} {
				tally := count.tallies[quota]
				joins := []string{}
				for name, join := range tally.joins {
					joins = append(joins, fmt.Sprint(name, join.at, join.version, join.before))
				}
				slices.Sort(joins)
				total := tally.total["pods"]
				all[i][quota] = []any{sortedKeys(tally.slices), joins, tally.left, tally.joined, tally.touched[Namespaces], total.String()}
			}
		}
		if diff := cmp.Diff(all[1], all[0]); diff != "" {
			t.Fatalf("seed %d, (-later,+first):\n%s", seed, diff)
		}
	}
}

// BenchmarkFirstNamespaces is the first list of a new leader.
func BenchmarkFirstNamespaces(b *testing.B) {
	list := make([]NamespaceLabels, 20000)
	for i := range list {
		list[i] = NamespaceLabels{Name: fmt.Sprint("ns", i), Labels: map[string]string{"team": fmt.Sprint("t", i%1000)}, Version: uint64(i + 1)}
	}
	for b.Loop() {
		count := newCount()
		for i := range 1000 {
			count.Define(targetFor(b, fmt.Sprint("t", i)), start)
		}
		count.ReplaceNamespaces(list, 30000, start)
	}
}
