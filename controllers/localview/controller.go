/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package localview

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/controllers/lag"
	"github.com/sharedquota/shared-quota-operator/controllers/pace"
	"github.com/sharedquota/shared-quota-operator/controllers/trigger"
	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/events"
	"github.com/sharedquota/shared-quota-operator/internal/groupcommit"
	"github.com/sharedquota/shared-quota-operator/internal/report"
)

// +kubebuilder:rbac:groups=quota.sharedquota.dev,resources=localresourcequotas,verbs=list;watch;create;update;delete

const (
	// viewsWhileChanging is how many views of a quota are written in one round
	// while its totals keep changing.
	viewsWhileChanging = 5
	// writesAtOnce bounds the writes of one round that are under way together.
	writesAtOnce = 4
)

// Controller writes local views.
type Controller struct {
	clock   clock.Clock
	client  client.Client
	count   *counting.Count
	group   *groupcommit.Group
	changed *trigger.Trigger
	// recorder is told of each level that a view reaches.
	recorder events.Recorder
	// every is the least time between two rounds of writes for one quota.
	every time.Duration

	pace *pace.Pace
	lag  *lag.Lag

	// mu guards written.
	mu sync.Mutex
	// quota name -> the totals that its views were last written for
	written map[string]totals
}

// totals are the figures that all views of a quota share.
type totals struct{ used, reserved corev1.ResourceList }

func (t totals) equal(other totals) bool {
	return quota.Equals(t.used, other.used) && quota.Equals(t.reserved, other.reserved)
}

// NewController makes the controller. The trigger must be fired with every
// quota whose count or ledger changes.
func NewController(
	clock clock.Clock, client client.Client, count *counting.Count, group *groupcommit.Group,
	changed *trigger.Trigger, lag *lag.Lag, recorder events.Recorder, every time.Duration,
) *Controller {
	return &Controller{
		clock: clock, client: client, count: count, group: group, changed: changed, recorder: recorder, every: every,
		pace: pace.New(clock), lag: lag, written: map[string]totals{},
	}
}

// Name returns the controller's name.
func (*Controller) Name() string { return "localview" }

// Register adds the controller to the manager. A view that someone edits or
// deletes is written again.
func (c *Controller) Register(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(c.Name()).
		For(&quotav1.ClusterResourceQuota{}).
		Watches(&quotav1.LocalResourceQuota{}, handler.EnqueueRequestsFromMapFunc(
			func(_ context.Context, view client.Object) []reconcile.Request {
				return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: view.GetName()}}}
			})).
		WatchesRawSource(c.changed.Source()).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(c)
}

// Reconcile writes the views of one quota, unless they were written a moment ago.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if wait := c.pace.Left(request.Name); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	asOf := c.clock.Now()
	present, err := c.present(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	object := &quotav1.ClusterResourceQuota{}
	err = c.client.Get(ctx, request.NamespacedName, object)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading quota %s: %w", request.Name, err)
	}
	if err != nil {
		c.forget(request.Name)
		return reconcile.Result{}, c.remove(ctx, request.Name, slices.Collect(maps.Values(present)))
	}
	wanted, shared, counted := c.wanted(object)
	if !counted {
		return reconcile.Result{}, nil // the count will ask again
	}
	planned := plan(object, wanted, present)
	// While the totals keep changing, every view is outdated all the time: then only
	// the most urgent are written in each round, and the rest once the totals stand still.
	due := planned.outdated
	if c.changing(request.Name, shared) {
		due = due[:min(len(due), viewsWhileChanging)]
	}
	result, err := c.project(ctx, object, planned, due)
	if err == nil {
		c.lag.Shown(request.Name, asOf, namespacesOf(planned.outdated[len(due):])...)
	}
	return result, err
}

func namespacesOf(views []*quotav1.LocalResourceQuota) []string {
	namespaces := make([]string, 0, len(views))
	for _, view := range views {
		namespaces = append(namespaces, view.Namespace)
	}
	return namespaces
}

// changing tells whether the totals are others than those of the round before,
// and remembers them for the next.
func (c *Controller) changing(name string, is totals) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was, known := c.written[name]
	c.written[name] = is
	return known && !was.equal(is)
}

// present returns the views that there are, by namespace.
func (c *Controller) present(ctx context.Context, name string) (map[string]*quotav1.LocalResourceQuota, error) {
	list := &quotav1.LocalResourceQuotaList{}
	if err := c.client.List(ctx, list, client.MatchingFields{nameIndex: name}); err != nil {
		return nil, fmt.Errorf("listing the views of quota %s: %w", name, err)
	}
	present := make(map[string]*quotav1.LocalResourceQuota, len(list.Items))
	for i := range list.Items {
		present[list.Items[i].Namespace] = &list.Items[i]
	}
	return present, nil
}

// wanted returns the views that there should be, by namespace, and what they
// share; false before the quota has been counted.
func (c *Controller) wanted(
	object *quotav1.ClusterResourceQuota,
) (wanted map[string]quotav1.LocalResourceQuotaStatus, shared totals, counted bool) {
	state := c.group.Current(object.Name)
	wanted = map[string]quotav1.LocalResourceQuotaStatus{}
	c.count.Read(object.Name, func(view counting.View) {
		complete := view.CompleteNames()
		counted = view.Definition().UID == object.UID && state.Quota == object.UID
		total, hard := quota.Mask(view.Total(), complete), object.Spec.Quota.Hard
		reserved := state.Reserved()
		shared = totals{used: total, reserved: reserved}
		for namespace, used := range view.Slices() {
			wanted[namespace] = quotav1.LocalResourceQuotaStatus{
				Total:         corev1.ResourceQuotaStatus{Hard: hard, Used: total},
				Reserved:      reserved,
				Available:     report.Available(hard, total, reserved),
				Used:          quota.Mask(used, complete),
				Scopes:        object.Spec.Quota.Scopes,
				ScopeSelector: object.Spec.Quota.ScopeSelector,
				Summary:       report.Summary(total, hard),
			}
		}
	})
	return wanted, shared, counted
}

// project removes what is unwanted and writes what is due.
func (c *Controller) project(
	ctx context.Context, object *quotav1.ClusterResourceQuota, planned plannedViews, due []*quotav1.LocalResourceQuota,
) (reconcile.Result, error) {
	removed := c.remove(ctx, object.Name, planned.unwanted)
	if err := errors.Join(removed, c.writeAll(ctx, due, planned.risen)); err != nil {
		return reconcile.Result{}, fmt.Errorf("writing the views of quota %s: %w", object.Name, err)
	}
	if len(due) > 0 {
		c.pace.Rest(object.Name, c.every)
	}
	if len(due) < len(planned.outdated) {
		return reconcile.Result{RequeueAfter: c.every}, nil
	}
	return reconcile.Result{}, nil
}

func (c *Controller) writeAll(
	ctx context.Context, views []*quotav1.LocalResourceQuota, risen map[*quotav1.LocalResourceQuota][]corev1.ResourceName,
) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writesAtOnce)
	for _, view := range views {
		group.Go(func() error {
			written, err := c.write(ctx, view)
			if written {
				c.tell(view, risen[view])
			}
			return err
		})
	}
	return group.Wait() //nolint:wrapcheck // write has said what
}

// tell tells the owner of the namespace which levels a view that was just written
// has reached. They are in the view now: nobody else tells.
func (c *Controller) tell(view *quotav1.LocalResourceQuota, risen []corev1.ResourceName) {
	for _, name := range risen {
		events.LevelReachedInView(view, events.UseOf(name, view.Status.Levels[name], view.Status.Total)).Record(c.recorder)
	}
}

func (c *Controller) remove(ctx context.Context, quota string, views []*quotav1.LocalResourceQuota) error {
	failures := make([]error, 0, len(views))
	for _, view := range views {
		failures = append(failures, client.IgnoreNotFound(c.client.Delete(ctx, view)))
	}
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("deleting views of quota %s: %w", quota, err)
	}
	return nil
}

// write tells whether the view is stored.
func (c *Controller) write(ctx context.Context, view *quotav1.LocalResourceQuota) (bool, error) {
	if view.ResourceVersion != "" {
		err := c.client.Update(ctx, view)
		// Whoever changed or deleted it meanwhile asks for another round by that.
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return false, nil
		}
		return err == nil, err //nolint:wrapcheck // the error names the view
	}
	err := c.client.Create(ctx, view)
	// A namespace that is going takes no new objects, and needs none.
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("creating the view in namespace %s: %w", view.Namespace, err)
	}
	return true, nil
}

func (c *Controller) forget(quota string) {
	c.pace.Forget(quota)
	c.lag.Forget(quota)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.written, quota)
}
