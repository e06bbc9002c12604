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
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/controllers/trigger"
	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/groupcommit"
	"github.com/sharedquota/shared-quota-operator/internal/report"
)

// +kubebuilder:rbac:groups=quota.sharedquota.dev,resources=localresourcequotas,verbs=get;list;watch;create;update;delete

// Controller writes local views.
type Controller struct {
	clock   clock.Clock
	client  client.Client
	count   *counting.Count
	group   *groupcommit.Group
	changed *trigger.Trigger
	// every is the least time between two rounds of writes for one quota.
	every time.Duration

	// mu guards written.
	mu sync.Mutex
	// quota name -> when its views were last written
	written map[string]time.Time
}

// NewController makes the controller. The trigger must be fired with every
// quota whose count or ledger changes.
func NewController(
	clock clock.Clock, client client.Client, count *counting.Count, group *groupcommit.Group,
	changed *trigger.Trigger, every time.Duration,
) *Controller {
	return &Controller{
		clock: clock, client: client, count: count, group: group, changed: changed, every: every,
		written: map[string]time.Time{},
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
	if wait := c.untilNextRound(request.Name); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
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
		return reconcile.Result{}, c.project(ctx, object, nil, present)
	}
	wanted, counted := c.wanted(object)
	if !counted {
		return reconcile.Result{}, nil // the count will ask again
	}
	return reconcile.Result{}, c.project(ctx, object, wanted, present)
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

// wanted returns the views that there should be, by namespace; false before
// the quota has been counted.
func (c *Controller) wanted(object *quotav1.ClusterResourceQuota) (map[string]quotav1.LocalResourceQuotaStatus, bool) {
	state := c.group.Current(object.Name)
	wanted := map[string]quotav1.LocalResourceQuotaStatus{}
	counted := false
	c.count.Read(object.Name, func(view counting.View) {
		complete := completeNames(view)
		counted = view.Definition().UID == object.UID && state.Quota == object.UID
		total, hard := quota.Mask(view.Total(), complete), object.Spec.Quota.Hard
		reserved := state.Reserved()
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
	return wanted, counted
}

func completeNames(view counting.View) []corev1.ResourceName {
	var names []corev1.ResourceName
	for name := range view.Definition().Sources {
		if view.Complete(name) {
			names = append(names, name)
		}
	}
	return names
}

// project makes the views that are present those that are wanted.
func (c *Controller) project(
	ctx context.Context, object *quotav1.ClusterResourceQuota,
	wanted map[string]quotav1.LocalResourceQuotaStatus, present map[string]*quotav1.LocalResourceQuota,
) error {
	var failures []error
	wrote := false
	for namespace, status := range wanted {
		view, exists := present[namespace]
		if exists && ownedBy(view, object) && apiequality.Semantic.DeepEqual(view.Status, status) {
			continue
		}
		wrote = true
		failures = append(failures, c.write(ctx, newView(object, namespace, status, view)))
	}
	for namespace, view := range present {
		if _, keep := wanted[namespace]; !keep {
			failures = append(failures, client.IgnoreNotFound(c.client.Delete(ctx, view)))
		}
	}
	if wrote {
		c.wrote(object.Name)
	}
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("writing the views of quota %s: %w", object.Name, err)
	}
	return nil
}

func (c *Controller) write(ctx context.Context, view *quotav1.LocalResourceQuota) error {
	if view.ResourceVersion != "" {
		return client.IgnoreNotFound(c.client.Update(ctx, view))
	}
	err := c.client.Create(ctx, view)
	// A namespace that is going takes no new objects, and needs none.
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("creating the view in namespace %s: %w", view.Namespace, err)
	}
	return nil
}

func newView(
	object *quotav1.ClusterResourceQuota, namespace string,
	status quotav1.LocalResourceQuotaStatus, previous *quotav1.LocalResourceQuota,
) *quotav1.LocalResourceQuota {
	view := &quotav1.LocalResourceQuota{ObjectMeta: metav1.ObjectMeta{
		Name: object.Name, Namespace: namespace,
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: quotav1.GroupVersion.String(), Kind: "ClusterResourceQuota",
			Name: object.Name, UID: object.UID, Controller: ptr.To(true),
		}},
	}}
	if previous != nil {
		view.ResourceVersion = previous.ResourceVersion
	}
	view.Status = status
	return view
}

func ownedBy(view *quotav1.LocalResourceQuota, object *quotav1.ClusterResourceQuota) bool {
	return metav1.IsControlledBy(view, object)
}

func (c *Controller) untilNextRound(quota string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.written[quota].Add(c.every).Sub(c.clock.Now())
}

func (c *Controller) wrote(quota string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written[quota] = c.clock.Now()
}

func (c *Controller) forget(quota string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.written, quota)
}
