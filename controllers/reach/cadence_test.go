// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedquota/shared-quota-operator/internal/reach"
)

func TestWhenToProbe(t *testing.T) {
	one, two := reach.Edition{Generation: 1}, reach.Edition{Generation: 2}
	now := time.Unix(5000, 0)
	c := &cadence{}
	var got []time.Duration
	probes := func(edition reach.Edition, proved bool) {
		now = now.Add(c.wait(edition, now))
		c.ended(proved, now)
		got = append(got, c.wait(edition, now))
	}
	var want []time.Duration
	probes(one, true)
	want = append(want, probeEvery)
	if wait := c.wait(two, now); wait != 0 {
		t.Errorf("a new edition: got a wait of %s, want none", wait)
	}
	for i := range quickProbes + 8 {
		probes(two, false)
		want = append(want, min(time.Second, 20*time.Millisecond<<max(0, i+1-quickProbes)))
	}
	probes(two, true)
	probes(two, false)
	want = append(want, probeEvery, probeSoon)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("waits (-want,+got):\n%s", diff)
	}
}
