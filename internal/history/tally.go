// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"slices"
)

// mostWorkloads is how many workloads are counted of each quota and period.
const mostWorkloads = 16

// workload is the controller of refused objects; only the namespace if there is none.
type workload struct{ namespace, kind, name string }

func (w workload) compare(other workload) int {
	return cmp.Or(cmp.Compare(w.namespace, other.namespace), cmp.Compare(w.kind, other.kind), cmp.Compare(w.name, other.name))
}

// tally counts requests of the workloads that have most, by the algorithm of Misra and Gries. A count may be too low
// by one part in 17 of all requests, and is never too high, so that no workload is blamed for those of others.
type tally map[workload]int64

func (t tally) count(of workload, requests int64) {
	if _, known := t[of]; !known && len(t) >= mostWorkloads {
		least := requests
		for _, count := range t {
			least = min(least, count)
		}
		t.lower(least)
		requests -= least
	}
	if requests > 0 {
		t[of] += requests
	}
}

func (t tally) lower(by int64) {
	for of, count := range t {
		if count <= by {
			delete(t, of)
		} else {
			t[of] = count - by
		}
	}
}

// add adds what another tally counted, which may leave more than mostWorkloads.
func (t tally) add(other tally) {
	for of, count := range other {
		t[of] += count
	}
}

// fit leaves mostWorkloads.
func (t tally) fit() {
	if len(t) <= mostWorkloads {
		return
	}
	counts := make([]int64, 0, len(t))
	for _, count := range t {
		counts = append(counts, count)
	}
	slices.SortFunc(counts, func(a, b int64) int { return cmp.Compare(b, a) })
	t.lower(counts[mostWorkloads])
}

// top returns the workload with most requests.
func (t tally) top() (most workload, requests int64) {
	for of, count := range t {
		if count > requests || count == requests && of.compare(most) < 0 {
			most, requests = of, count
		}
	}
	return most, requests
}
