// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
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
	clock := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	trigger := New(clock)
	trigger.FireWithin([]string{"too early"}, time.Second)
	queue := started(t, trigger)
	fired := func(want ...string) {
		t.Helper()
		if got := drained(queue); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	trigger.FireWithin([]string{"a"}, time.Second)
	clock.Step(900 * time.Millisecond)
	trigger.FireWithin([]string{"a", "b"}, time.Second)
	trigger.FireWithin(nil, time.Second)
	fired()
	clock.Step(100 * time.Millisecond)
	fired("a", "b")
	trigger.FireWithin([]string{"c"}, time.Second)
	clock.Step(time.Second)
	fired("c")
}

func TestWhichUpdatesOfAQuotaPass(t *testing.T) {
	for name, test := range map[string]struct {
		change       func(*quotav1.ClusterResourceQuota)
		spec, ledger bool
	}{
		"its status":         {change: func(q *quotav1.ClusterResourceQuota) { q.Status.Summary = "pods: 1/2" }},
		"its labels":         {change: func(q *quotav1.ClusterResourceQuota) { q.Labels = map[string]string{"a": "b"} }},
		"its spec":           {change: func(q *quotav1.ClusterResourceQuota) { q.Generation++ }, spec: true, ledger: true},
		"it is another":      {change: func(q *quotav1.ClusterResourceQuota) { q.UID = "b" }, spec: true, ledger: true},
		"its ledger's name":  {change: func(q *quotav1.ClusterResourceQuota) { q.Status.Ledger = "c" }, ledger: true},
		"nothing: a re-list": {change: func(*quotav1.ClusterResourceQuota) {}},
	} {
		t.Run(name, func(t *testing.T) {
			before := &quotav1.ClusterResourceQuota{}
			before.UID, before.Generation = "a", 1
			after := before.DeepCopy()
			test.change(after)
			update := event.UpdateEvent{ObjectOld: before, ObjectNew: after}
			if spec, ledger := SpecChanged().Update(update), SpecOrLedgerChanged().Update(update); spec != test.spec || ledger != test.ledger {
				t.Errorf("got %t and %t, want %t and %t", spec, ledger, test.spec, test.ledger)
			}
			if !SpecChanged().Create(event.CreateEvent{Object: after}) || !SpecOrLedgerChanged().Delete(event.DeleteEvent{Object: after}) {
				t.Error("want every creation and deletion passed")
			}
		})
	}
}
