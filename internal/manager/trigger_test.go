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

	"github.com/sharedquota/shared-quota-operator/controllers/status"
	"github.com/sharedquota/shared-quota-operator/controllers/usage"
	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
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

// A count changes with each object, and reconciling a quota looks at its whole ledger.
func TestOnlyALedgerThatChangesAsksForAReconcileOfItsQuota(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	o := &operator{
		group:   driver.New(t.Context(), clock, nil, nil, driver.Options{}),
		count:   counting.New(nil, func([]string) {}, func([]string) {}),
		ledgers: newTrigger(clock), statuses: newTrigger(clock), views: newTrigger(clock), wakes: newTrigger(clock),
		statusLag: status.NewLag(clock, nil), viewsLag: status.NewLag(clock, nil),
	}
	o.joins = usage.NewJoins(t.Context(), clock, o.count, o.group, nil, nil)
	ledgers, statuses := started(t, o.ledgers), started(t, o.statuses)
	for _, test := range []struct {
		happens           func([]string)
		ledgers, statuses int
	}{
		{happens: o.counted, statuses: 1},
		{happens: o.changed, ledgers: 1, statuses: 1},
	} {
		test.happens([]string{"red"})
		clock.Step(lookWithin)
		if got := []int{len(drained(ledgers)), len(drained(statuses))}; got[0] != test.ledgers || got[1] != test.statuses {
			t.Errorf("got %d reconciles of ledgers and %d of statuses, want %d and %d", got[0], got[1], test.ledgers, test.statuses)
		}
	}
}
