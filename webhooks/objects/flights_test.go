// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestARequestIsUnderWayUntilItsUseIsSeenOrItEnds(t *testing.T) {
	pods := func(number int64) corev1.ResourceList {
		return corev1.ResourceList{"pods": *resource.NewQuantity(number, resource.DecimalSI)}
	}
	start := time.Unix(1, 0)
	under := &flights{}
	want := func(at time.Time, number int64) {
		t.Helper()
		if got := under.under(at, "team")["pods"]; got.Value() != number {
			t.Errorf("%d pods are under way, want %d", got.Value(), number)
		}
	}
	wantUsed := func(version uint64, used, number int64) {
		t.Helper()
		if got := under.land("team", version, pods(used))["pods"]; got.Value() != number {
			t.Errorf("%d pods are used, want %d", got.Value(), number)
		}
	}
	wantUsed(1, 7, 7) // it isn't remembered
	first, before := under.begin(start, "team", pods(1))
	if len(before) != 0 {
		t.Errorf("%v was under way", before)
	}
	wantUsed(5, 3, 3)
	second, _ := under.begin(start, "team", pods(2))
	third, _ := under.begin(start, "team", pods(4))
	under.begin(start, "office", pods(9))
	want(start, 7)
	wantUsed(6, 5, 5)
	want(start, 5) // the first, and half of the second
	wantUsed(5, 3, 5)
	want(start, 5) // an older one says nothing
	under.end([]*flight{third})
	want(start, 1)
	wantUsed(7, 2, 2) // something was deleted
	wantUsed(8, 9, 9)
	want(start, 0)
	under.end([]*flight{first, second})
	late, _ := under.begin(start.Add(time.Second), "team", pods(1))
	want(start.Add(flightLife+time.Millisecond), 1)
	want(late.until.Add(time.Millisecond), 0)
	if len(under.tallies) != 0 || len(under.begun) != 0 {
		t.Errorf("%d and %d are remembered", len(under.tallies), len(under.begun))
	}
}
