// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/controllers/status"
	"github.com/sharedquota/shared-quota-operator/controllers/usage"
	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
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

// ahead is a count that has not come as far as any ledger.
type ahead struct{}

func (ahead) Observe(_ string, known ledger.State) *ledger.Observation {
	return &ledger.Observation{
		Basis: known.Basis, Used: corev1.ResourceList{"pods": resource.MustParse("1")},
		Sources: map[corev1.ResourceName][]schema.GroupResource{"pods": {{Resource: "pods"}}},
		Counted: map[schema.GroupResource]uint64{ledger.Namespaces: 3, {Resource: "pods"}: 3},
		Seen:    func(ledger.Reservation) bool { return false },
	}
}

// A count changes with each object, and reconciling a quota looks at its whole ledger. But a ledger that takes no count may be
// of a history that a restore of etcd took back.
func TestOnlyALedgerThatChangesOrTakesNoCountAsksForAReconcileOfItsQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := clock.RealClock{}
		o := &operator{
			group:   driver.New(t.Context(), clock, nil, nil, driver.Options{}),
			ledgers: newTrigger(clock), statuses: newTrigger(clock), views: newTrigger(clock), wakes: newTrigger(clock),
			statusLag: status.NewLag(clock, nil), viewsLag: status.NewLag(clock, nil),
		}
		if err := o.countObjects(t.Context()); err != nil {
			t.Fatal(err)
		}
		looked := make(chan struct{})
		o.counting = &usage.Controller{Parts: usage.Parts{Clock: clock, Count: o.count, Group: o.group}}
		o.counting.Joins = usage.NewJoins(t.Context(), &o.counting.Parts, func(schema.GroupResource) string {
			close(looked)
			runtime.Goexit() // it has shown that it would look
			return ""
		}, nil)
		ledgers, statuses := started(t, o.ledgers), started(t, o.statuses)
		for _, test := range []struct {
			name              string
			happens           func([]string)
			ledgers, statuses int
		}{
			{name: "another count", happens: o.counted, statuses: 1},
			{name: "another ledger", happens: o.changed, ledgers: 1, statuses: 1},
			{name: "a ledger that takes no count", ledgers: 1, statuses: 1, happens: func(quotas []string) {
				o.group.Follow(ahead{})
				o.group.Saw(quotas[0], machine.Snapshot{Version: machine.Version{ResourceVersion: 9, UID: "u"}, State: ledger.State{
					Basis: ledger.Basis{Quota: "q"}, Counted: map[schema.GroupResource]uint64{{Resource: "pods"}: 9},
				}})
				clock.Sleep(10 * time.Second)
			}},
		} {
			test.happens([]string{"red"})
			clock.Sleep(lookWithin)
			synctest.Wait()
			if got := []int{len(drained(ledgers)), len(drained(statuses))}; got[0] != test.ledgers || got[1] != test.statuses {
				t.Errorf("%s: got %d reconciles of ledgers and %d of statuses, want %d and %d", test.name, got[0], got[1], test.ledgers, test.statuses)
			}
		}
		selector, err := definition.CompileSelector(quotav1.ClusterResourceQuotaSelector{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "blue"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		o.count.Define(counting.Target{
			UID: "q", Quota: evaluation.Quota{Name: "blue"}, Selector: selector,
			Sources: map[corev1.ResourceName][]schema.GroupResource{"count/gadgets.example.com": {{Group: "example.com", Resource: "gadgets"}}},
		}, clock.Now())
		o.count.SetNamespace("a", map[string]string{"team": "blue"}, nil, 5, clock.Now())
		<-looked // for the objects that the namespace brought
	})
}
