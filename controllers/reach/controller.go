// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/controllers/trigger"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
	"github.com/sharedquota/shared-quota-operator/internal/reach"
	"github.com/sharedquota/shared-quota-operator/internal/resourceversion"
)

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,verbs=list;watch;create
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=shared-quota,verbs=update;patch

const (
	// fieldOwner is whom the API server takes for the writer of the configuration.
	fieldOwner = "shared-quota-operator"
	// readTimeout and writeTimeout bound one read or write.
	readTimeout, writeTimeout = 10 * time.Second, 10 * time.Second
	// forgetPatience is for how long the configuration waits until what the quotas use is
	// forgotten.
	forgetPatience = 10 * time.Second
	// forgetsAtOnce bounds the ledgers that are written for that at the same time. Each of them may wait two
	// seconds for the end of escrows (driver.Group.Impose): with fewer, a thousand quotas would wait for longer
	// than forgetPatience.
	forgetsAtOnce = 200
)

// Options are what the controller needs to be told.
type Options struct {
	// Settings are asked for at each reconcile, because certificates change.
	Settings func() reach.Settings
	// Owners are the configuration's: it is deleted with them.
	Owners []metav1.OwnerReference
	// Define returns the definition of a quota.
	Define func(*quotav1.ClusterResourceQuota) definition.Definition
	// Forget has a quota's ledger forget what is used, so that it is counted again before
	// anything is granted.
	Forget func(ctx context.Context, quota string, uid types.UID) error
	// SettingsChanged is fired when the settings have changed.
	SettingsChanged *trigger.Trigger
	// Proofs are told what is in the cluster, and then Observed is called with the
	// quotas of which something else is known.
	Proofs   *reach.Proofs
	Observed func(quotas []string)
}

// Controller writes the webhook configuration.
type Controller struct {
	clock      clock.PassiveClock
	client     client.Client
	evaluators *evaluation.Evaluators
	// versions is only used by Reconcile, of which one runs at a time.
	versions reach.Versions
	options  Options
	// exposed: the API server may have told a client the token. It may have done so before
	// this controller started, when a replica ended.
	exposed atomic.Bool
	// begun: what was in the cluster when this controller started was dealt with.
	begun bool
	// due are the quotas of which what is used must be forgotten, and waiting is since
	// when the configuration waits for that.
	due     map[types.UID]bool
	waiting time.Time
	// dispute is only used by Reconcile.
	dispute dispute
	// narrowing: others have added something that takes out namespaces, if there are any.
	narrowing atomic.Bool
}

// NewController makes the controller.
func NewController(clock clock.PassiveClock, client client.Client, evaluators *evaluation.Evaluators, options Options) *Controller {
	controller := &Controller{clock: clock, client: client, evaluators: evaluators, options: options}
	controller.exposed.Store(true)
	return controller
}

// Owners returns who owns the configuration: the operator's namespace, where it
// has one, so that no configuration is left that refuses what nobody answers for
// when the operator is removed together with its namespace.
func Owners(ctx context.Context, reader client.Reader, namespace string) ([]metav1.OwnerReference, error) {
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

// Name returns the controller's name.
func (*Controller) Name() string { return "reach" }

// Register adds the controller to the manager. All its events ask for the one
// configuration.
func (c *Controller) Register(mgr ctrl.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: reach.ConfigurationName}}}
	})
	ours := predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetName() == reach.ConfigurationName })
	narrowing := predicate.NewPredicateFuncs(func(client.Object) bool { return c.narrowing.Load() })
	return ctrl.NewControllerManagedBy(mgr).
		Named(c.Name()).
		Watches(&quotav1.ClusterResourceQuota{}, all, builder.WithPredicates(trigger.SpecChanged())).
		Watches(&admissionregistrationv1.ValidatingWebhookConfiguration{}, all, builder.WithPredicates(ours)).
		WatchesMetadata(&corev1.Namespace{}, all, builder.WithPredicates(narrowing,
			predicate.Or(predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		WatchesRawSource(c.options.SettingsChanged.Source()).
		WatchesRawSource(source.Func(atTheStart)).
		Complete(c)
}

// atTheStart asks for the configuration where there is no quota yet: the first
// one must be validated too.
func atTheStart(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: reach.ConfigurationName}})
	return nil
}

// Reconcile makes the configuration ask about what the quotas limit now, where
// they limit it, whoever has edited it. What it asks about besides, internal/reach tells.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	seen, err := c.look(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if wait := c.behind(seen); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	c.judge(ctx, seen)
	c.observe(seen)
	if seen.settings.Endpoint.CABundle == nil {
		return reconcile.Result{}, nil // nobody could be called yet; the trigger tells when
	}
	began := c.clock.Now()
	settings, due := seen.settings.WithToken(seen.found.Own, c.exposed.Load(), began)
	wanted, upToDate := c.wanted(settings, seen)
	if wait := c.dispute.brake.Wait(began); !upToDate && wait > 0 && reach.SameIntent(wanted, c.dispute.wrote) {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if !upToDate {
		c.begin(seen)
	}
	c.begun = true
	failed := c.forget(ctx, seen.quotas)
	if upToDate || failed != nil && c.clock.Since(c.waiting) < forgetPatience {
		return c.again(due, failed), failed
	}
	if err := c.replace(ctx, settings, wanted, began, reach.Keys(seen.quotas, wanted)); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, failed
}

// again asks for the reconcile that replaces the token, or that believes that a repair
// lasts; a failure asks for one itself.
func (c *Controller) again(due time.Time, failed error) reconcile.Result {
	if failed != nil {
		return reconcile.Result{}
	}
	now := c.clock.Now()
	wait := max(due.Sub(now), time.Second)
	if trial := c.dispute.brake.Trial(now); trial > 0 {
		wait = min(wait, trial)
	}
	return reconcile.Result{RequeueAfter: wait}
}

// replace writes the configuration, unless somebody has written another one meanwhile,
// which asks for the next reconcile.
func (c *Controller) replace(
	ctx context.Context, settings reach.Settings, wanted *admissionregistrationv1.ValidatingWebhookConfiguration, began time.Time,
	keys sets.Set[string],
) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	version, err := c.write(ctx, settings, wanted, keys)
	if err == nil {
		c.noteWritten(wanted, version)
	}
	switch {
	case apierrors.IsConflict(err):
		return nil
	case err != nil:
		return fmt.Errorf("writing the webhook configuration: %w", err)
	case settings.TokenSince.Equal(began):
		c.exposed.Store(false) // no client of the API server was told this one
	}
	return nil
}

// Exposed notes that the API server may have told a client the token, because a call of a
// webhook failed. The token is replaced.
func (c *Controller) Exposed() {
	c.exposed.Store(true)
	c.options.SettingsChanged.Fire([]string{reach.ConfigurationName})
}

// observe tells the proofs what is in the cluster. What others have added is of the same
// generation as what they added it to, because both cover the same.
func (c *Controller) observe(seen *snapshot) {
	edition, stays := c.edition(seen)
	generation := seen.current.Generation
	if stays {
		generation = edition.Generation
	}
	c.options.Observed(c.options.Proofs.Observe(
		seen.current.UID, generation, edition, seen.quotas, c.standings(seen), c.clock.Now()))
}

// wanted returns the configuration that must replace the one in the cluster. If that
// asks about the same, it is upToDate, and wanted is of the same edition; otherwise it is
// of the next.
func (c *Controller) wanted(
	settings reach.Settings, seen *snapshot,
) (wanted *admissionregistrationv1.ValidatingWebhookConfiguration, upToDate bool) {
	webhooks, exact := settings.Webhooks(seen.quotas)
	wanted = &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta: metav1.TypeMeta{
			APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration",
		},
		ObjectMeta: metav1.ObjectMeta{
			Name: reach.ConfigurationName, OwnerReferences: c.options.Owners, ResourceVersion: seen.current.ResourceVersion,
			Annotations: settings.Annotations(exact),
		},
	}
	if edition, stays := c.edition(seen); stays {
		wanted.Webhooks = append(slices.Clip(webhooks), settings.Probe(edition))
		if alike(seen.found.Own, wanted) {
			if c.dispute.wrote == nil {
				c.noteWritten(wanted, seen.current.ResourceVersion) // by the leader before
			}
			return wanted, true
		}
	}
	wanted.Webhooks = append(slices.Clip(webhooks), settings.Probe(reach.NextEdition(seen.current)))
	return wanted, false
}

// alike reports whether two configurations ask about the same, and go with the same.
func alike(current, wanted *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
	return apiequality.Semantic.DeepEqual(current.Webhooks, wanted.Webhooks) &&
		apiequality.Semantic.DeepEqual(current.OwnerReferences, wanted.OwnerReferences) &&
		reach.Annotated(current, wanted)
}

// write applies the configuration, unless somebody else has written it meanwhile, and
// returns its resourceVersion. An apply leaves alone what others have added besides the
// selectors; an update removes it. What they add while it is written is no error: the next
// reconcile finds it.
func (c *Controller) write(
	ctx context.Context, settings reach.Settings, wanted *admissionregistrationv1.ValidatingWebhookConfiguration, keys sets.Set[string],
) (version string, err error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(wanted)
	if err != nil {
		return "", fmt.Errorf("converting it: %w", err)
	}
	applied := &unstructured.Unstructured{Object: content}
	applied.SetManagedFields(nil)
	unstructured.RemoveNestedField(applied.Object, "metadata", "creationTimestamp")
	err = c.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.ForceOwnership, client.FieldOwner(fieldOwner))
	if err != nil {
		return "", fmt.Errorf("applying it: %w", err)
	}
	current := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(applied.Object, current); err != nil {
		return "", fmt.Errorf("reading what was applied: %w", err)
	}
	if alike(settings.Find(current, keys).Own, wanted) {
		return current.ResourceVersion, nil
	}
	generated := len(wanted.Webhooks) - 1 // the last is that of the edition
	wanted.Webhooks[generated] = settings.Probe(reach.NextEdition(current))
	current.Webhooks, current.OwnerReferences = wanted.DeepCopy().Webhooks, wanted.OwnerReferences
	if err := c.client.Update(ctx, current, client.FieldOwner(fieldOwner)); err != nil {
		return "", fmt.Errorf("removing what others added: %w", err)
	}
	return current.ResourceVersion, nil
}

// quotas are what there is to ask about. A quota that is invalid limits what can be
// read of it: without an entry, nobody would be asked about what must be refused.
func (c *Controller) quotas(ctx context.Context, settings reach.Settings) ([]reach.Quota, error) {
	list := &quotav1.ClusterResourceQuotaList{}
	if err := c.client.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing quotas: %w", err)
	}
	quotas := make([]reach.Quota, 0, len(list.Items))
	for i := range list.Items {
		if quota := &list.Items[i]; quota.DeletionTimestamp.IsZero() {
			quotas = append(quotas, c.quota(settings, quota))
		}
	}
	return quotas, nil
}

func (c *Controller) quota(settings reach.Settings, object *quotav1.ClusterResourceQuota) reach.Quota {
	defined := c.options.Define(object)
	// What is only tried is counted and charged, too.
	tracked, _ := c.evaluators.Resources(defined.Quota.Spec.Hard)
	limited := slices.Collect(maps.Keys(tracked))
	told, _ := c.evaluators.Resources(defined.Enforcement.Told(defined.Limits.Hard))
	return reach.Quota{
		Name: object.Name, UID: object.UID, Generation: object.Generation,
		Version:  resourceversion.Parse(object.ResourceVersion),
		Selector: defined.Selector, Limited: limited,
		Admits:    defined.Enforcement.AdmitsUnavailable(settings.AdmitsByDefault()),
		Preflight: defined.Preflight != quotav1.PreflightOff && slices.ContainsFunc(slices.Collect(maps.Keys(told)), fitting.Makes),
	}
}
