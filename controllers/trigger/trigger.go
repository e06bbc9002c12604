// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trigger lets domain code wake a controller: names go straight into
// the controller's work queue, which merges what comes twice. Firing never
// blocks.
package trigger

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Trigger is a source of a controller's requests.
type Trigger struct {
	clock clock.WithDelayedExecution
	// mu guards the rest.
	mu sync.Mutex
	// queue is nil until the controller has started.
	queue queue
	// soon are the names that are waited with.
	soon map[string]bool
}

// New makes a Trigger.
func New(clock clock.WithDelayedExecution) *Trigger { return &Trigger{clock: clock} }

// Source returns what the controller watches.
func (t *Trigger) Source() source.Source {
	return source.Func(func(_ context.Context, queue queue) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.queue = queue
		return nil
	})
}

// Fire asks the controller to reconcile the cluster-scoped objects of these
// names. Before the controller has started it does nothing: a controller
// begins with all objects anyway.
func (t *Trigger) Fire(names []string) {
	t.mu.Lock()
	queue := t.queue
	t.mu.Unlock()
	if queue == nil {
		return
	}
	for _, name := range names {
		queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	}
}

// FireWithin asks for the same after a delay. What is asked for several times meanwhile is done once.
func (t *Trigger) FireWithin(names []string, delay time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queue == nil || len(names) == 0 {
		return
	}
	if t.soon == nil {
		t.soon = map[string]bool{}
		t.clock.AfterFunc(delay, t.fireSoon)
	}
	for _, name := range names {
		t.soon[name] = true
	}
}

func (t *Trigger) fireSoon() {
	t.mu.Lock()
	names := slices.Collect(maps.Keys(t.soon))
	t.soon = nil
	t.mu.Unlock()
	t.Fire(names)
}

// SpecChanged lets pass the updates after which a quota's spec is another one, or the quota is: an update may
// stand for a deletion and a creation that no watch has shown.
func SpecChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(update event.UpdateEvent) bool {
		before, after := update.ObjectOld, update.ObjectNew
		return before.GetGeneration() != after.GetGeneration() || before.GetUID() != after.GetUID()
	}}
}

// SpecOrLedgerChanged also lets pass those after which the status names another ledger.
func SpecOrLedgerChanged() predicate.Predicate {
	return predicate.Or(SpecChanged(), predicate.Funcs{UpdateFunc: func(update event.UpdateEvent) bool {
		before, isBefore := update.ObjectOld.(*quotav1.ClusterResourceQuota)
		after, isAfter := update.ObjectNew.(*quotav1.ClusterResourceQuota)
		return isBefore && isAfter && before.Status.Ledger != after.Status.Ledger
	}})
}
