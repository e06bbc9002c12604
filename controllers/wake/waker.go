// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package wake

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/metrics"
	"github.com/sharedquota/shared-quota-operator/internal/waiting"
)

const (
	// firstWakes is how many workloads of a quota are woken first, because how many objects a workload lacks is known
	// once it has been woken. While none lacks more than one, twice as many are woken next, mostWakes at most.
	firstWakes, mostWakes = 8, 64
	// wakesAtOnce is how many of these calls are made at the same time.
	wakesAtOnce = 16
	// wakesPerSecond bounds the wakes of all quotas together.
	wakesPerSecond = 200
)

// WakerParts are the dependencies of a Waker.
type WakerParts struct {
	Clock  clock.Clock
	Client client.Client
	Count  *counting.Count
	Group  *driver.Group
	List   *waiting.List
	// Workloads are woken.
	Workloads *Workloads
	Metrics   *metrics.Metrics
	// Changed must be fired with every quota whose count, ledger or waiting workloads change.
	Changed source.Source
}

// Waker wakes workloads when there is room for them.
type Waker struct {
	WakerParts

	// mu guards the fields below.
	mu      sync.Mutex
	limiter *rate.Limiter
	// quota name -> the promises to its owners
	rooms map[string]*waiting.Room
	// forbidden: it was logged that workloads may not be woken.
	forbidden bool
}

// NewWaker makes the controller.
func NewWaker(parts WakerParts) *Waker {
	return &Waker{
		WakerParts: parts, limiter: rate.NewLimiter(wakesPerSecond, wakesPerSecond), rooms: map[string]*waiting.Room{},
	}
}

// Name returns the controller's name.
func (*Waker) Name() string { return "wake" }

// Register adds the controller to the manager.
func (w *Waker) Register(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(w.Name()).
		For(&quotav1.ClusterResourceQuota{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: func(update event.UpdateEvent) bool {
			return definition.Changed(update.ObjectOld, update.ObjectNew)
		}})).
		WatchesRawSource(w.Changed).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(w)
}

// Reconcile wakes as many workloads as fit into one quota.
func (w *Waker) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	for most := firstWakes; ctx.Err() == nil; {
		records := w.List.Waiting(request.Name)
		if len(records) == 0 {
			w.forget(request.Name)
			return reconcile.Result{}, nil
		}
		free, known, err := w.free(ctx, request.Name)
		if err != nil || !known {
			return reconcile.Result{}, err // if it isn't known, the count will ask again
		}
		plan := w.plan(request.Name, records, free, most)
		w.Metrics.RefusedAgain(request.Name, plan.RefusedAgain)
		for _, key := range plan.Forget {
			w.List.Over(w.Clock.Now(), key)
		}
		if len(plan.Wake) == 0 {
			return reconcile.Result{RequeueAfter: plan.Next}, nil
		}
		most = min(2*most, mostWakes)
		if w.wake(ctx, request.Name, plan.Wake) > 1 {
			most = firstWakes
		}
		if free.Hard == nil { // the quota is gone, and so are its metrics
			w.Metrics.Gone(request.Name)
		}
	}
	return reconcile.Result{}, nil
}

// forget drops the promises of a quota for which no owner waits.
func (w *Waker) forget(quota string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.rooms, quota)
}

func (w *Waker) plan(quota string, records []waiting.Record, free waiting.Free, most int) waiting.Plan {
	now := w.Clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	room, known := w.rooms[quota]
	if !known {
		room = waiting.NewRoom()
		w.rooms[quota] = room
	}
	plan := room.Plan(now, records, free, min(most, int(w.limiter.TokensAt(now))))
	w.limiter.AllowN(now, len(plan.Wake))
	return plan
}

// wake wakes workloads, notes their shortages, and returns the largest of them.
func (w *Waker) wake(ctx context.Context, quota string, records []waiting.Record) (most int64) {
	lacking := make([]int64, len(records))
	var group errgroup.Group
	group.SetLimit(wakesAtOnce)
	for i := range records {
		group.Go(func() error {
			lacking[i] = w.wakeOne(ctx, quota, records[i])
			return nil
		})
	}
	_ = group.Wait()
	return slices.Max(lacking)
}

// wakeOne wakes a workload, and returns how many objects it lacks; zero if that isn't known.
func (w *Waker) wakeOne(ctx context.Context, quota string, record waiting.Record) (lacking int64) {
	began := w.Clock.Now()
	lacking, err := w.Workloads.Wake(ctx, record.Owner, began)
	if err != nil {
		w.failed(ctx, quota, record, err)
		return 0
	}
	w.Metrics.Woken(quota)
	w.mu.Lock()
	w.forbidden = false
	if room := w.rooms[quota]; room != nil {
		room.Answered(record, lacking)
	}
	w.mu.Unlock()
	if lacking == 0 {
		w.List.Over(began, record.Key())
	}
	return lacking
}

func (w *Waker) failed(ctx context.Context, quota string, record waiting.Record, err error) {
	w.Metrics.WakeFailed(quota)
	forbidden := apierrors.IsForbidden(err)
	w.mu.Lock()
	if room := w.rooms[quota]; room != nil {
		room.Failed(w.Clock.Now(), record.Key())
	}
	told := forbidden && w.forbidden
	w.forbidden = w.forbidden || forbidden
	w.mu.Unlock()
	switch {
	case told || ctx.Err() != nil:
	case forbidden:
		log.FromContext(ctx).Error(err, "Workloads that wait for room aren't woken: give the operator the rights of "+
			"config/rbac/wake_role.yaml, or switch this off by --wake-owners=false")
	default:
		log.FromContext(ctx).Error(err, "A workload that waits for room was not woken. It is tried again")
	}
}

// free returns the room that a quota has; false if that isn't known yet.
func (w *Waker) free(ctx context.Context, name string) (waiting.Free, bool, error) {
	object := &quotav1.ClusterResourceQuota{}
	err := w.Client.Get(ctx, client.ObjectKey{Name: name}, object)
	if apierrors.IsNotFound(err) {
		return waiting.Free{Limits: func(string) bool { return false }}, true, nil
	}
	if err != nil {
		return waiting.Free{}, false, fmt.Errorf("reading quota %s: %w", name, err)
	}
	free, known := freeOf(object, w.Count, w.Group.Current(name))
	return free, known, nil
}
