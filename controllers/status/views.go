// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
)

// +kubebuilder:rbac:groups=quota.sharedquota.dev,resources=localresourcequotas,verbs=list;watch;create;update;delete

// roundTimeout bounds one round; after it the work queue tries again.
const roundTimeout = 30 * time.Second

// ViewController writes local views.
type ViewController struct {
	Parts

	pace *Pace
	// turns has one element for each write that is under way and not slow.
	turns chan struct{}

	// mu guards written and cleared.
	mu sync.Mutex
	// quota name -> the totals that its views were last written for
	written map[string]totals
	// cleared tells for which selection of namespaces no other holds a view.
	// quota name -> selection
	cleared map[string]uint64
}

// NewViewController makes the controller.
func NewViewController(parts Parts) *ViewController {
	return &ViewController{
		Parts: parts, pace: NewPace(parts.Clock), turns: make(chan struct{}, turns),
		written: map[string]totals{}, cleared: map[string]uint64{},
	}
}

// Name returns the controller's name.
func (*ViewController) Name() string { return "localview" }

// register adds the controller to a manager whose replica leads. A view that someone edits or
// deletes is written again.
func (c *ViewController) register(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(c.Name()).
		For(&quotav1.ClusterResourceQuota{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: func(update event.UpdateEvent) bool {
			return definition.Changed(update.ObjectOld, update.ObjectNew)
		}})).
		Watches(&quotav1.LocalResourceQuota{}, handler.EnqueueRequestsFromMapFunc(
			func(_ context.Context, view client.Object) []reconcile.Request {
				return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: view.GetName()}}}
			})).
		WatchesRawSource(source.Func(func(ctx context.Context, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			return addIndex(ctx, mgr.GetFieldIndexer())
		})).
		WatchesRawSource(c.ViewsChanged).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4, ReconciliationTimeout: roundTimeout}).
		Complete(c)
}

// Reconcile writes the views of one quota, unless some were written a moment ago.
// Deletions don't wait.
func (c *ViewController) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	wait := c.pace.Left(request.Name)
	if wait > 0 && c.isCleared(request.Name) {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	asOf := c.Clock.Now()
	present, err := c.present(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	object := &quotav1.ClusterResourceQuota{}
	err = c.Client.Get(ctx, request.NamespacedName, object)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading quota %s: %w", request.Name, err)
	}
	if err != nil {
		c.forget(request.Name)
		return reconcile.Result{}, c.remove(ctx, slices.Collect(maps.Values(present)))
	}
	current := c.figures(object)
	if current.selection == 0 {
		return reconcile.Result{}, nil // the count will ask again
	}
	planned := plan(object, current.views(object), current.surge, present, asOf)
	if err := c.clear(ctx, request.Name, current.selection, planned.unwanted); err != nil {
		return reconcile.Result{}, err
	}
	if wait > 0 || !current.counted {
		return reconcile.Result{RequeueAfter: max(wait, 0)}, nil
	}
	torn := counting.Torn(definition.EnforcedLimits(object.Spec).Most(), current.totals.used, current.totals.reserved)
	if again := c.pace.LookAgain(request.Name, torn); again > 0 {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	due := planned.due(c.changing(request.Name, current.totals))
	result, err := c.project(ctx, request.Name, planned, due)
	if err == nil {
		c.ViewsLag.Shown(request.Name, asOf, planned.left(due)...)
	}
	return result, err
}

// present returns the views that there are, by namespace.
func (c *ViewController) present(ctx context.Context, name string) (map[string]*quotav1.LocalResourceQuota, error) {
	list := &quotav1.LocalResourceQuotaList{}
	if err := c.Client.List(ctx, list, client.MatchingFields{nameIndex: name}); err != nil {
		return nil, fmt.Errorf("listing the views of quota %s: %w", name, err)
	}
	present := make(map[string]*quotav1.LocalResourceQuota, len(list.Items))
	for i := range list.Items {
		present[list.Items[i].Namespace] = &list.Items[i]
	}
	return present, nil
}

// isCleared reports whether the namespaces are still those outside of which no view
// is left.
func (c *ViewController) isCleared(name string) bool {
	var selection uint64
	c.Count.Read(name, func(view counting.View) { selection = view.Selection() })
	c.mu.Lock()
	defer c.mu.Unlock()
	return selection != 0 && selection == c.cleared[name]
}

// clear deletes the views of namespaces that aren't selected.
func (c *ViewController) clear(ctx context.Context, name string, selection uint64, views []*quotav1.LocalResourceQuota) error {
	if err := c.remove(ctx, views); err != nil {
		return fmt.Errorf("deleting views of quota %s: %w", name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cleared[name] = selection
	return nil
}

// changing reports whether the totals are others than those of the round before,
// and remembers them for the next.
func (c *ViewController) changing(name string, current totals) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	previous, known := c.written[name]
	c.written[name] = current
	return known && !previous.equal(current)
}

// project makes the writes that are due in this round.
func (c *ViewController) project(
	ctx context.Context, name string, planned plannedViews, due []*quotav1.LocalResourceQuota,
) (reconcile.Result, error) {
	if len(due) == 0 {
		return reconcile.Result{}, nil
	}
	err := each(due, c.inTurn(ctx, func(view *quotav1.LocalResourceQuota) error { return c.write(ctx, view, planned.risen[view]) }))
	c.pace.Rest(name, c.Every)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("writing the views of quota %s: %w", name, err)
	}
	if len(due) < planned.count() {
		return reconcile.Result{RequeueAfter: c.Every}, nil
	}
	return reconcile.Result{}, nil
}

func (c *ViewController) forget(quota string) {
	c.pace.Forget(quota)
	c.ViewsLag.Forget(quota)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.written, quota)
	delete(c.cleared, quota)
}
