// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// trigger wakes a controller: names go straight into its work queue, which merges duplicates. Firing never blocks.
type trigger struct {
	clock clock.WithDelayedExecution
	// mu guards the rest.
	mu sync.Mutex
	// queue is nil until the controller has started.
	queue queue
	// soon are the names that are waited with.
	soon map[string]bool
}

// newTrigger makes a trigger.
func newTrigger(clock clock.WithDelayedExecution) *trigger { return &trigger{clock: clock} }

// source returns the source that the controller watches.
func (t *trigger) source() source.Source {
	return source.Func(func(_ context.Context, queue queue) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.queue = queue
		return nil
	})
}

// fire asks the controller to reconcile the cluster-scoped objects of these
// names. Before the controller has started it does nothing: a controller
// begins with all objects anyway.
func (t *trigger) fire(names []string) {
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

// fireWithin asks for the same after a delay. Repeated requests for it meanwhile are merged.
func (t *trigger) fireWithin(names []string, delay time.Duration) {
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

func (t *trigger) fireSoon() {
	t.mu.Lock()
	names := slices.Collect(maps.Keys(t.soon))
	t.soon = nil
	t.mu.Unlock()
	t.fire(names)
}
