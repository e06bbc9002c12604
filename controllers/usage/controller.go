// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// +kubebuilder:rbac:groups=quota.sharedquota.dev,resources=clusterresourcequotas,verbs=get;list;watch
// +kubebuilder:rbac:groups=quota.sharedquota.dev,resources=clusterresourcequotas/status,verbs=patch
// +kubebuilder:rbac:groups=quota.sharedquota.dev,resources=quotaledgers,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=list;watch

// Two more roles allow to list and watch the resources that quotas name. They are
// written by hand so that the second can be left out:
// config/rbac/reader_role.yaml and reader_all_role.yaml.

const (
	// writeTimeout bounds each write; after it the work queue tries again.
	writeTimeout = 30 * time.Second
	// reconcilesAtOnce bounds the quotas that are defined, or looked after, at the same
	// time.
	reconcilesAtOnce = 50
	// retryWithin is the longest pause before a reconcile that failed is tried again.
	retryWithin = 5 * time.Second
)

// Parts are the dependencies of the package.
type Parts struct {
	Clock clock.WithTickerAndDelayedExecution
	// Client may read from a cache; Live must not.
	Client client.Client
	Live   client.Reader
	// Events has the clients for the objects that are counted.
	Events     EventSource
	Discovery  *SteadyDiscovery
	Evaluators *evaluation.Evaluators
	// Define returns the definition of a quota.
	Define func(*quotav1.ClusterResourceQuota) definition.Definition
	Count  *counting.Count
	Group  *driver.Group
	// Decode reads a ledger.
	Decode   Decode
	Outcomes outcomes.Observer
	// OnChange is called with the quotas whose ledger or sources have changed, and must not block. It must fire Changed
	// with them. The count itself concerns only the machine, and Joins.
	OnChange func(quotas []string)
	// Begin, if it isn't nil, adds the first conditions to a status that names the first ledger. It saves a write.
	Begin   func(quota *quotav1.ClusterResourceQuota, now time.Time)
	Changed source.Source
	// Life of a reservation.
	Life time.Duration
	// MaxDoubtful is the amount that one namespace may hold in doubt, in percent
	// of a limit.
	MaxDoubtful int64
}

// Controller defines the targets of the count, and looks after ledgers and
// reservations that expire in them. The quotas' machines settle by the count.
type Controller struct {
	Parts
	Watches  *Watches
	Joins    *Joins
	Recounts *Recounts

	recovery *Recovery
	escrows  *Escrows
	objects  *Lookup
	seen     sightings
}

// NewController makes the controller, and its parts, which work in the background until ctx ends.
func NewController(ctx context.Context, parts Parts) *Controller {
	c := &Controller{Parts: parts, objects: NewLookup(parts.Events.Metadata, parts.Discovery)}
	newest := NewNewest(parts.Evaluators, parts.Discovery, c.objects)
	c.Watches = NewWatches(&c.Parts)
	c.Joins = NewJoins(ctx, &c.Parts, c.Watches.Version, newest)
	c.Recounts = NewRecounts(ctx, &c.Parts, newest.Limited)
	c.escrows = NewEscrows(ctx, &c.Parts, newest.Limited)
	c.recovery = NewRecovery(&c.Parts, newest.Limited, newest.Version)
	return c
}

// Name returns the controller's name.
func (*Controller) Name() string { return "usage" }

// Register adds the controller to the manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(customResourceDefinition)
	return ctrl.NewControllerManagedBy(mgr).
		Named(c.Name()).
		For(&quotav1.ClusterResourceQuota{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: isChange})).
		WatchesMetadata(crd, handler.EnqueueRequestsFromMapFunc(c.redefined)).
		WatchesRawSource(c.Changed).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: reconcilesAtOnce,
			// A reconcile that fails is tried again in seconds, however often it failed before: nothing else may ask for it.
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](10*time.Millisecond, retryWithin),
		}).
		Complete(c)
}

// redefined makes the resource of a CustomResourceDefinition be looked up again.
// The quotas are told once the outcome is known.
func (c *Controller) redefined(_ context.Context, definition client.Object) []reconcile.Request {
	c.Watches.Redefined(schema.ParseGroupResource(definition.GetName()), !definition.GetDeletionTimestamp().IsZero())
	return nil
}

// Reconcile brings one quota's count and ledger up to date.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	quota := &quotav1.ClusterResourceQuota{}
	err := c.Client.Get(ctx, request.NamespacedName, quota)
	if apierrors.IsNotFound(err) || err == nil && !quota.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, c.forget(ctx, request.Name)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading quota %s: %w", request.Name, err)
	}
	defined := c.Define(quota)
	if defined.IsInvalid() {
		// It can't be counted. Admission refuses requests for the resources that it names (definition.Salvage), and its
		// conditions say so.
		log.FromContext(ctx).Info("Quota is invalid", "error", defined.Invalid.Error())
		return reconcile.Result{}, nil
	}
	if err := c.remember(ctx, quota); err != nil {
		return reconcile.Result{}, err
	}
	if err := c.follow(defined); err != nil {
		return reconcile.Result{}, err
	}
	switch wait, err := c.recovery.Ensure(ctx, quota, c.counted(quota.Name)); {
	case err != nil:
		return reconcile.Result{}, err
	case wait > 0:
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	//nolint:contextcheck // a look outlives the reconcile that asks for it
	c.Joins.Follow(quota.Name)
	again, known := c.Recounts.Follow(quota), c.sight(quota.Name) //nolint:contextcheck // the same
	gone, left := expired(known, known.State.Escrows, c.Life)
	again = earlier(again, earlier(left, c.escrows.Follow(quota, gone))) //nolint:contextcheck // the same
	again = earlier(again, c.recovery.Again(quota.Name))
	next, err := c.expire(ctx, quota.Name, known)
	doubts, failed := c.doubt(ctx, quota.Name, known)
	if err := errors.Join(err, failed); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: earlier(doubts, earlier(next, again))}, nil
}

// counted returns how far the quota's objects are counted.
func (c *Controller) counted(quota string) (counted map[schema.GroupResource]uint64) {
	c.Count.Read(quota, func(view counting.View) { counted = counting.ObservationOf(view).Counted })
	return counted
}

// remember notifies discovery of the resources that the quota's ledger has counted, before it looks them up for the
// quota: a resource that isn't served at the moment must not be taken for gone.
func (c *Controller) remember(ctx context.Context, quota *quotav1.ClusterResourceQuota) error {
	if defined := c.Count.Read(quota.Name, func(counting.View) {}); defined {
		return nil
	}
	sources, err := c.recovery.Sources(ctx, quota)
	for resource := range sources {
		c.Watches.Counted(resource)
	}
	return err
}

// follow starts to count the resources that the spec limits, unless that is under
// way.
func (c *Controller) follow(defined definition.Definition) error {
	name := defined.Quota.Name
	tracked, _ := c.Evaluators.Resources(defined.Quota.Spec.Hard)
	if err := c.Watches.Want(name, slices.Collect(maps.Keys(tracked))); err != nil {
		return fmt.Errorf("watching what quota %s limits: %w", name, err)
	}
	wanted := counting.Target{
		UID: defined.Limits.Quota, Generation: defined.Limits.Generation, Digest: defined.Limits.Digest,
		Quota: defined.Quota, Selector: defined.Selector,
		Sources: sources(tracked, c.Watches.Served),
	}
	underway := false
	c.Count.Read(name, func(view counting.View) {
		current := view.Target()
		underway = basisOf(current) == basisOf(wanted) && maps.EqualFunc(current.Sources, wanted.Sources, slices.Equal)
	})
	if !underway {
		c.Count.Define(wanted, c.Clock.Now())
	}
	return nil
}

// forget drops all that is known of a quota that is gone, and its ledger. Its owner
// reference would see to that, where a garbage collector runs. At once is better: a new
// quota of this name must not find it. If there is such a quota already, though no watch
// has shown it, the ledger may be that one's and stays.
func (c *Controller) forget(ctx context.Context, quota string) error {
	c.Count.Forget(quota)
	c.Watches.Forget(quota)
	c.Group.Forget(quota)
	c.Outcomes.Gone(quota)
	c.seen.forget(quota)
	c.recovery.Forget(quota)
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	ledger := &quotav1.QuotaLedger{}
	err := c.Client.Get(ctx, client.ObjectKey{Name: quota}, ledger)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the ledger of quota %s: %w", quota, err)
	}
	if generation, err := c.objects.Generation(ctx, quota); err != nil || generation != 0 {
		return err
	}
	err = c.Client.Delete(ctx, ledger, client.Preconditions{UID: &ledger.UID, ResourceVersion: &ledger.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the ledger of quota %s: %w", quota, err)
	}
	return nil
}

// earlier returns the shorter of two waits, where zero is no wait at all.
func earlier(a, b time.Duration) time.Duration {
	waits := slices.DeleteFunc([]time.Duration{a, b}, func(d time.Duration) bool { return d == 0 })
	if len(waits) == 0 {
		return 0
	}
	return slices.Min(waits)
}

// isChange reports whether a quota's definition is another one, or its status names another ledger.
func isChange(update event.UpdateEvent) bool {
	before, isBefore := update.ObjectOld.(*quotav1.ClusterResourceQuota)
	after, isAfter := update.ObjectNew.(*quotav1.ClusterResourceQuota)
	return definition.Changed(update.ObjectOld, update.ObjectNew) || isBefore && isAfter && before.Status.Ledger != after.Status.Ledger
}
