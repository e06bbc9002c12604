// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,verbs=list;watch;create
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=shared-quota,verbs=update

const (
	// fieldOwner is the configuration's writer for the API server.
	fieldOwner = "shared-quota-operator"
	// readTimeout and writeTimeout bound one read or write.
	readTimeout, writeTimeout = 10 * time.Second, 10 * time.Second
	// repairEvery is the least time between two repairs. The first is at once.
	repairEvery = time.Second
	// lasting is for how long a repair must last until it is believed. A client that keeps watching the configuration
	// reverts it sooner, and the quotas' conditions must not change with each repair.
	lasting = 500 * time.Millisecond
)

// Options are the settings and dependencies of the controller.
type Options struct {
	// Settings are asked for at each reconcile, because certificates change.
	Settings func() webhookconfig.Settings
	// Owners returns the configuration's, as they are now: it is deleted with them.
	Owners func(context.Context) ([]metav1.OwnerReference, error)
	// Leads returns an error if this process isn't known to lead now. A process that stood still may not know that
	// another leads.
	Leads func(context.Context) error
	// Define returns the definition of a quota.
	Define func(*quotav1.ClusterResourceQuota) definition.Definition
	// Judged reports whether workloads are judged by a limit on a resource. It may be nil: then none is.
	Judged func(schema.GroupResource) bool
	// Forget makes a quota's ledger forget its Used, so that it is counted again
	// before anything is granted.
	Forget func(ctx context.Context, quota string, uid types.UID) error
	// Changed fires when the settings have changed, and within the time that Look is called with.
	Changed source.Source
	Look    func(within time.Duration)
	// Proofs receive the configuration and the quotas in the cluster, and then
	// Observed is called with the quotas whose verdict has changed.
	Proofs   *webhookconfig.Proofs
	Observed func(quotas []string)
}

// Controller writes the webhook configuration.
type Controller struct {
	clock      clock.PassiveClock
	client     client.Client
	evaluators *evaluation.Evaluators
	options    Options
	// exposed: the API server may have told a client the token. It may have done so before
	// this controller started, when a replica ended.
	exposed atomic.Bool
	gaps    gaps

	// Only Reconcile uses the fields below, and one runs at a time.

	versions webhookconfig.Versions
	// started is when this controller first had to write the configuration, and begun is true once it may.
	started time.Time
	begun   bool
	// wrote is the configuration as it was written last, or as it was found to be right; nil before.
	wrote *admissionregistrationv1.ValidatingWebhookConfiguration
	// wroteAt is when it was written, and repairedAt when that last undid others' changes.
	wroteAt, repairedAt time.Time
	// edit names the other client that edited the configuration; empty if there was none, or once a repair has lasted.
	edit string
	// failure is why the configuration couldn't be written last; empty if it could.
	failure string
}

// snapshot has the objects that one reconcile has seen.
type snapshot struct {
	settings webhookconfig.Settings
	// current is the configuration in the cluster; empty if it is missing.
	current   *admissionregistrationv1.ValidatingWebhookConfiguration
	missing   bool
	owners    []metav1.OwnerReference
	quotas    []webhookconfig.Quota
	coverages []webhookconfig.Coverage // of each of the quotas
}

// NewController makes the controller.
func NewController(clock clock.PassiveClock, client client.Client, evaluators *evaluation.Evaluators, options Options) *Controller {
	c := &Controller{clock: clock, client: client, evaluators: evaluators, options: options}
	c.exposed.Store(true)
	c.gaps.forget, c.gaps.ended = options.Forget, func(left bool) {
		again := time.Duration(0)
		if left {
			again = repairEvery
		}
		options.Look(again)
	}
	return c
}

// Owners returns the owner of the configuration: the operator's namespace, if it has one. Otherwise a configuration
// that refuses requests without an operator would be left when the operator is removed together with its namespace. It
// is read each time: a namespace that is made again has another UID, and the garbage collector deletes the objects that
// the one before owns.
func Owners(reader client.Reader, namespace string) func(context.Context) ([]metav1.OwnerReference, error) {
	return func(ctx context.Context) ([]metav1.OwnerReference, error) {
		if namespace == "" {
			return nil, nil
		}
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		owner := &metav1.PartialObjectMetadata{}
		owner.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		if err := reader.Get(ctx, client.ObjectKey{Name: namespace}, owner); err != nil {
			return nil, fmt.Errorf("reading the operator's namespace %s: %w", namespace, err)
		}
		return []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: owner.Name, UID: owner.UID}}, nil
	}
}

// Name returns the controller's name.
func (*Controller) Name() string { return "webhookconfig" }

// Register adds the controller to the manager. All its events ask for the one
// configuration.
func (c *Controller) Register(mgr ctrl.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: webhookconfig.ConfigurationName}}}
	})
	ours := predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetName() == webhookconfig.ConfigurationName })
	return ctrl.NewControllerManagedBy(mgr).
		Named(c.Name()).
		Watches(&quotav1.ClusterResourceQuota{}, all, builder.WithPredicates(predicate.Funcs{UpdateFunc: isChange})).
		Watches(&admissionregistrationv1.ValidatingWebhookConfiguration{}, all, builder.WithPredicates(ours)).
		WatchesRawSource(c.options.Changed).
		WatchesRawSource(source.Func(atTheStart)).
		// A write that fails is tried again within a second, however often it failed before.
		WithOptions(controller.Options{RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
			10*time.Millisecond, repairEvery)}).
		Complete(c)
}

// atTheStart asks for the configuration where there is no quota yet: the first
// one must be validated too.
func atTheStart(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: webhookconfig.ConfigurationName}})
	return nil
}

// Reconcile makes the configuration ask about the quotas' limits now, in their
// namespaces. Changes by others are repaired at once, at most once a second.
//
// Objects may have been stored before without a request to the operator, and then
// a ledger's used is too low to grant by:
//
//   - When this controller starts, there may have been no count for long. The
//     quotas that are uncovered forget their use before the configuration is
//     written. It waits ten seconds for that at most, because without it no quota
//     is enforced.
//   - Later on, the leader counts the stored objects all the time, and the
//     ledgers follow. So the configuration is written first: each moment without
//     it lets in anything, each moment until the count has caught up lets in no
//     more than was free. If all of it was gone, the quotas forget their use
//     right after that, so that a count that is behind bounds nothing.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Request) (result reconcile.Result, err error) {
	seen, err := c.look(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	c.judge(ctx, seen)
	c.observe(seen)
	if seen.settings.Endpoint.CABundle == nil {
		return reconcile.Result{}, nil // the operator couldn't be called yet; the trigger fires when it can
	}
	defer func() { c.noteFailure(err, seen) }()
	if seen.owners, err = c.options.Owners(ctx); err != nil {
		return reconcile.Result{}, err
	}
	began := c.clock.Now()
	settings, due := seen.settings.WithToken(seen.current, c.exposed.Load(), began)
	wanted, upToDate := c.wanted(settings, seen)
	if upToDate {
		c.begun, c.wrote = true, wanted
		c.gaps.close(ctx, seen.quotas)
		return c.again(due), nil
	}
	if wait := c.pause(seen); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	first := !c.begun
	if wait := c.begin(ctx, seen); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if err := c.options.Leads(ctx); err != nil {
		return reconcile.Result{}, err
	}
	written, err := c.write(ctx, wanted, seen.missing)
	if err != nil {
		return reconcile.Result{}, err
	}
	if written {
		c.noteWritten(wanted, seen)
		if settings.TokenSince.Equal(began) {
			c.exposed.Store(false) // no client of the API server was told this one
		}
		c.noteGap(ctx, seen, first)
	}
	return reconcile.Result{RequeueAfter: repairEvery}, nil // the event of the write comes sooner
}

// noteGap notes that no quota was enforced before a write, unless it was the first.
func (c *Controller) noteGap(ctx context.Context, seen *snapshot, first bool) {
	if !seen.missing || first {
		return
	}
	for _, quota := range seen.quotas {
		c.gaps.open(quota.UID)
	}
	c.gaps.close(ctx, seen.quotas)
}

// Exposed notes that the API server may have told a client the token, because a call of a
// webhook failed. The token is replaced.
func (c *Controller) Exposed() {
	c.exposed.Store(true)
	c.options.Look(0)
}

// look reads all that a reconcile needs.
func (c *Controller) look(ctx context.Context) (*snapshot, error) {
	seen := &snapshot{settings: c.options.Settings(), current: &admissionregistrationv1.ValidatingWebhookConfiguration{}}
	err := c.client.Get(ctx, client.ObjectKey{Name: webhookconfig.ConfigurationName}, seen.current)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the webhook configuration: %w", err)
	}
	seen.missing = err != nil
	if seen.quotas, err = c.quotas(ctx, seen.settings); err != nil {
		return nil, err
	}
	c.versions.Date(seen.settings, seen.current, seen.quotas)
	seen.coverages = seen.settings.Coverages(seen.current, seen.quotas)
	return seen, nil
}

// judge finds out whether another client has edited the configuration. Another leader's write is no edit.
func (c *Controller) judge(ctx context.Context, seen *snapshot) {
	edition, current := seen.settings.Edition(seen.current)
	edited := !seen.missing && !current
	if c.wrote != nil && !edited {
		intact, lasted := alike(seen.current, c.wrote), c.clock.Since(c.wroteAt)
		own, _ := seen.settings.Edition(c.wrote)
		// For a moment, the cache may lack a configuration that was created.
		edited = seen.missing && lasted >= repairEvery || edition == own && !intact
		if intact && lasted >= lasting {
			c.edit = ""
		}
	}
	if !edited {
		return
	}
	first := c.edit == ""
	if c.edit = webhookconfig.EditOf(seen.current, fieldOwner); first {
		log.FromContext(ctx).Info("The webhook configuration must be repaired", "why", c.edit)
	}
}

// observe hands the proofs the configuration and the quotas in the cluster.
func (c *Controller) observe(seen *snapshot) {
	edition, _ := seen.settings.Edition(seen.current)
	c.options.Observed(c.options.Proofs.Observe(webhookconfig.Observation{
		Configuration: seen.current.UID, Generation: seen.current.Generation, Edition: edition,
		Quotas: seen.quotas, Coverages: seen.coverages, Edit: c.edit, Failure: c.failure,
	}, c.clock.Now()))
}

// noteFailure notes the outcome of a reconcile that would have written the configuration if it had to, and reports
// changes.
func (c *Controller) noteFailure(err error, seen *snapshot) {
	failure := ""
	if err != nil {
		failure = webhookconfig.WithoutTokens(err.Error())
	}
	if failure != c.failure {
		c.failure = failure
		c.observe(seen)
	}
}

// pause returns how long the next write must wait, because others have written since the last one. A cache that is
// behind needs no pause: the API server refuses a write that isn't based on the newest version.
func (c *Controller) pause(seen *snapshot) time.Duration {
	if c.wrote == nil || alike(seen.current, c.wrote) {
		return 0
	}
	return c.repairedAt.Add(repairEvery).Sub(c.clock.Now())
}

func (c *Controller) noteWritten(wanted *admissionregistrationv1.ValidatingWebhookConfiguration, instead *snapshot) {
	now := c.clock.Now()
	if c.wrote != nil && !alike(instead.current, c.wrote) {
		c.repairedAt = now
	}
	c.wrote, c.wroteAt = wanted, now
}

// begin returns how long the first write must wait, because quotas forget their use.
func (c *Controller) begin(ctx context.Context, seen *snapshot) time.Duration {
	if c.begun {
		return 0
	}
	if c.started.IsZero() {
		c.started = c.clock.Now()
		for i, quota := range seen.quotas {
			if seen.coverages[i] == webhookconfig.Missing {
				c.gaps.open(quota.UID)
			}
		}
	}
	c.gaps.close(ctx, seen.quotas)
	wait := forgetPatience - c.clock.Since(c.started)
	if c.begun = wait <= 0 || c.gaps.closed(); c.begun {
		return 0
	}
	return wait
}

// again asks for the reconcile that replaces the token, or that believes that a repair lasts.
func (c *Controller) again(due time.Time) reconcile.Result {
	wait := max(due.Sub(c.clock.Now()), time.Second)
	if c.edit != "" {
		wait = lasting
	}
	return reconcile.Result{RequeueAfter: wait}
}

// wanted returns the configuration that must replace the one in the cluster. If
// that asks about the same, and no other client has written it since this
// operator did, it is upToDate, and wanted is of the same edition; otherwise it
// is of the next.
func (c *Controller) wanted(
	settings webhookconfig.Settings, seen *snapshot,
) (wanted *admissionregistrationv1.ValidatingWebhookConfiguration, upToDate bool) {
	webhooks, exact := settings.Webhooks(seen.quotas)
	wanted = seen.current.DeepCopy() // labels and other annotations are others' business
	wanted.Name, wanted.OwnerReferences = webhookconfig.ConfigurationName, seen.owners
	settings.Annotate(wanted, exact)
	if edition, current := seen.settings.Edition(seen.current); current {
		wanted.Webhooks = append(slices.Clip(webhooks), settings.Probe(edition))
		if alike(seen.current, wanted) {
			return wanted, true
		}
	}
	wanted.Webhooks = append(slices.Clip(webhooks), settings.Probe(webhookconfig.NextEdition(seen.current)))
	return wanted, false
}

// alike reports whether two configurations ask about the same, and go with the same.
func alike(current, wanted *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
	return apiequality.Semantic.DeepEqual(current.Webhooks, wanted.Webhooks) &&
		apiequality.Semantic.DeepEqual(current.OwnerReferences, wanted.OwnerReferences) &&
		webhookconfig.Annotated(current, wanted)
}

// write replaces the configuration. It reports false if another client has written another one meanwhile, or the cache
// has an older one than there is. The watch will show that.
func (c *Controller) write(
	ctx context.Context, wanted *admissionregistrationv1.ValidatingWebhookConfiguration, missing bool,
) (written bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	object := wanted.DeepCopy()
	if missing {
		err = c.client.Create(ctx, object, client.FieldOwner(fieldOwner))
	} else {
		err = c.client.Update(ctx, object, client.FieldOwner(fieldOwner))
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("writing the webhook configuration: %w", err)
	default:
		return true, nil
	}
}

// quotas returns the quotas that the configuration must ask about. An invalid
// quota limits its readable parts: without an entry, the requests that it must
// refuse wouldn't be asked about.
func (c *Controller) quotas(ctx context.Context, settings webhookconfig.Settings) ([]webhookconfig.Quota, error) {
	list := &quotav1.ClusterResourceQuotaList{}
	if err := c.client.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing quotas: %w", err)
	}
	quotas := make([]webhookconfig.Quota, 0, len(list.Items))
	for i := range list.Items {
		if quota := &list.Items[i]; quota.DeletionTimestamp.IsZero() {
			quotas = append(quotas, c.quota(settings, quota))
		}
	}
	return quotas, nil
}

func (c *Controller) quota(settings webhookconfig.Settings, object *quotav1.ClusterResourceQuota) webhookconfig.Quota {
	defined := c.options.Define(object)
	tracked, _ := c.evaluators.Resources(defined.Quota.Spec.Hard)
	limited := slices.Collect(maps.Keys(tracked))
	isTold := defined.Preflight != quotav1.PreflightOff && defined.Enforcement.Mode != quotav1.EnforcementAudit
	return webhookconfig.Quota{
		Name: object.Name, UID: object.UID, Generation: object.Generation,
		Version:  ledger.ParseVersion(object.ResourceVersion),
		Selector: defined.Selector, Limited: limited,
		Admits:    defined.Enforcement.AdmitsUnavailable(settings.AdmitsByDefault()),
		Preflight: isTold && c.options.Judged != nil && slices.ContainsFunc(limited, c.options.Judged),
	}
}

// isChange reports whether an update of a quota changes its definition.
func isChange(update event.UpdateEvent) bool {
	return definition.Changed(update.ObjectOld, update.ObjectNew)
}
