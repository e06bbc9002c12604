// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// LedgerController follows the ledgers.
type LedgerController struct{ *Parts }

// NewLedgerController makes the controller. It calls Parts.OnChange for every ledger that was written, by any client.
func NewLedgerController(parts *Parts) *LedgerController { return &LedgerController{parts} }

// Name returns the controller's name.
func (*LedgerController) Name() string { return "ledgers" }

// Register adds the controller to the manager. Of a ledger and its quota, either
// may be seen to go first.
func (c *LedgerController) Register(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(c.Name()).
		Watches(&quotav1.QuotaLedger{}, c.followed()).
		Watches(&quotav1.ClusterResourceQuota{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(deletions())).
		WithOptions(controller.Options{NeedLeaderElection: ptr.To(false)}).
		Complete(c)
}

func deletions() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// followed asks for a reconcile at every event, unless it is an update that the quota's machine
// knows: nearly always this process wrote it.
func (c *LedgerController) followed() handler.EventHandler {
	// A creation that is known asks for one, too: a reconcile that has found no ledger may be about to say so.
	ask := &handler.EnqueueRequestForObject{}
	return handler.Funcs{
		CreateFunc: ask.Create,
		DeleteFunc: ask.Delete,
		UpdateFunc: func(ctx context.Context, event event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			object, same := event.ObjectNew, event.ObjectNew.GetUID() == event.ObjectOld.GetUID()
			if same && c.Group.Knows(object.GetName(), ledger.ParseVersion(object.GetResourceVersion())) {
				c.OnChange([]string{object.GetName()})
				return
			}
			ask.Update(ctx, event, queue)
		},
	}
}

// Reconcile hands one ledger to its quota's machine.
func (c *LedgerController) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	// The leader checks whether the ledger still agrees with the count, or is
	// still there.
	defer c.OnChange([]string{request.Name})
	object := &quotav1.QuotaLedger{}
	err := c.Client.Get(ctx, request.NamespacedName, object)
	if apierrors.IsNotFound(err) {
		c.Group.Gone(request.Name)
		return reconcile.Result{}, c.forget(ctx, request.Name)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading ledger %s: %w", request.Name, err)
	}
	if c.Group.Knows(request.Name, ledger.ParseVersion(object.ResourceVersion)) {
		return reconcile.Result{}, nil // since it was asked for
	}
	snapshot, err := c.Decode(object)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	c.Group.Saw(request.Name, snapshot)
	return reconcile.Result{}, nil
}

// forget drops this replica's memory of a ledger that went with its quota. The
// replica may not be the leader.
func (c *LedgerController) forget(ctx context.Context, quota string) error {
	err := c.Client.Get(ctx, client.ObjectKey{Name: quota}, &quotav1.ClusterResourceQuota{})
	if apierrors.IsNotFound(err) {
		c.Group.Forget(quota)
		c.Outcomes.Gone(quota)
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading quota %s: %w", quota, err)
	}
	return nil
}
