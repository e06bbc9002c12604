// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func started(t *testing.T, trigger *Trigger) queue {
	t.Helper()
	limiter := workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()
	queue := workqueue.NewTypedRateLimitingQueue(limiter)
	if err := trigger.Source().Start(t.Context(), queue); err != nil {
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
	synctest.Test(t, func(t *testing.T) {
		trigger := &Trigger{}
		trigger.FireWithin([]string{"too early"}, time.Second)
		queue := started(t, trigger)
		trigger.FireWithin([]string{"a"}, time.Second)
		time.Sleep(900 * time.Millisecond)
		trigger.FireWithin([]string{"a", "b"}, time.Second)
		trigger.FireWithin(nil, time.Second)
		synctest.Wait()
		if got := drained(queue); len(got) > 0 {
			t.Errorf("got %v after less than the delay, want nothing", got)
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if got := drained(queue); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("got %v after the delay, want a and b", got)
		}
		trigger.FireWithin([]string{"c"}, time.Second)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := drained(queue); !slices.Equal(got, []string{"c"}) {
			t.Errorf("got %v after the next delay, want c", got)
		}
		queue.ShutDown()
	})
}
