// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
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
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/resourceversion"
	"github.com/sharedquota/shared-quota-operator/internal/trail"
)

// LedgerController follows the ledgers.
type LedgerController struct {
	client client.Reader
	group  *driver.Group
	trail  *trail.Trail
	decode Decode
	ends   Ends
	// changed is told of every ledger that was written, by whomever.
	changed func(quotas []string)
}

// Ends are told of quotas that are no more. The UID is empty if it isn't known.
type Ends struct {
	// Deleted: there is none of that name.
	Deleted func(quota string, uid types.UID)
	// Replaced: there is another one of that name.
	Replaced func(quota string, uid types.UID)
}

// NewLedgerController makes the controller. The function changed is told of every
// ledger that was written, by whomever.
func NewLedgerController(
	client client.Reader, group *driver.Group, trail *trail.Trail, decode Decode, ends Ends, changed func(quotas []string),
) *LedgerController {
	return &LedgerController{client: client, group: group, trail: trail, decode: decode, ends: ends, changed: changed}
}

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

// followed hands every event, in order, to the trail, and then asks for a
// reconcile, unless it is an update that the quota's machine knows: nearly always this process
// wrote it. Reconciles are merged by the work queue, and would pass over versions.
func (c *LedgerController) followed() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		// One that is known is asked for, too: a reconcile that has found no ledger may be about to say so.
		CreateFunc: func(_ context.Context, event event.CreateEvent, queue queue) {
			if ledger, ok := event.Object.(*quotav1.QuotaLedger); ok {
				c.trail.Saw(ledger)
				queue.Add(requestOf(ledger))
			}
		},
		UpdateFunc: func(_ context.Context, event event.UpdateEvent, queue queue) {
			ledger, ok := event.ObjectNew.(*quotav1.QuotaLedger)
			if !ok {
				return
			}
			c.trail.Saw(ledger)
			if ledger.UID == event.ObjectOld.GetUID() && c.group.Knows(ledger.Name, resourceversion.Parse(ledger.ResourceVersion)) {
				c.changed([]string{ledger.Name})
				return
			}
			queue.Add(requestOf(ledger))
		},
		DeleteFunc: func(_ context.Context, event event.DeleteEvent, queue queue) {
			if ledger, ok := event.Object.(*quotav1.QuotaLedger); ok {
				c.trail.Deleted(ledger, !event.DeleteStateUnknown)
				queue.Add(requestOf(ledger))
			}
		},
	}
}

func requestOf(object client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
}

// Reconcile hands one ledger to its quota's machine.
func (c *LedgerController) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	// Whoever counts looks whether the ledger still agrees, or is still there.
	defer c.changed([]string{request.Name})
	object := &quotav1.QuotaLedger{}
	before := c.group.Current(request.Name).Quota
	err := c.client.Get(ctx, request.NamespacedName, object)
	if apierrors.IsNotFound(err) {
		c.group.Gone(request.Name)
		return reconcile.Result{}, c.forget(ctx, request.Name, before)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading ledger %s: %w", request.Name, err)
	}
	if c.group.Knows(request.Name, resourceversion.Parse(object.ResourceVersion)) {
		return reconcile.Result{}, nil // since it was asked for
	}
	snapshot, err := c.decode(object)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	c.group.Saw(request.Name, snapshot)
	if before != "" && snapshot.State.Quota != before {
		c.ends.Replaced(request.Name, before)
	}
	return reconcile.Result{}, nil
}

// forget drops what this replica, which may not be the leader, knows of a ledger
// that went with its quota.
func (c *LedgerController) forget(ctx context.Context, quota string, uid types.UID) error {
	now := &quotav1.ClusterResourceQuota{}
	err := c.client.Get(ctx, client.ObjectKey{Name: quota}, now)
	if apierrors.IsNotFound(err) {
		c.trail.Forget(quota)
		c.group.Forget(quota)
		c.ends.Deleted(quota, uid)
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading quota %s: %w", quota, err)
	}
	if uid != "" && now.UID != uid {
		c.ends.Replaced(quota, uid)
	}
	return nil
}
