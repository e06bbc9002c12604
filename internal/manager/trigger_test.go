// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func started(t *testing.T, source *trigger) queue {
	t.Helper()
	limiter := workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()
	queue := workqueue.NewTypedRateLimitingQueue(limiter)
	if err := source.source().Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(queue.ShutDown)
	return queue
}

func drained(queue queue) (names []string) {
	for queue.Len() > 0 {
		request, _ := queue.Get()
		queue.Done(request)
		names = append(names, request.Name)
	}
	return slices.Sorted(slices.Values(names))
}

func TestFireWithinMergesWhatComesMeanwhile(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	trigger := newTrigger(clock)
	trigger.fireWithin([]string{"too early"}, time.Second)
	queue := started(t, trigger)
	fired := func(want ...string) {
		t.Helper()
		if got := drained(queue); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	trigger.fireWithin([]string{"a"}, time.Second)
	clock.Step(900 * time.Millisecond)
	trigger.fireWithin([]string{"a", "b"}, time.Second)
	trigger.fireWithin(nil, time.Second)
	fired()
	clock.Step(100 * time.Millisecond)
	fired("a", "b")
	trigger.fireWithin([]string{"c"}, time.Second)
	clock.Step(time.Second)
	fired("c")
}
