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

package reach

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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
	// forgetsAtOnce bounds the ledgers that are written for that at the same time.
	forgetsAtOnce = 50
)

// Options are what the controller needs to be told.
type Options struct {
	// Settings are asked for at each reconcile, because certificates change.
	Settings func() reach.Settings
	// Owners are the configuration's: it is deleted with them.
	Owners []metav1.OwnerReference
	// Forget has a quota's ledger forget what is used, so that it is counted anew before
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
	// due are the quotas of which what is used is to be forgotten, and waiting is since
	// when the configuration waits for that.
	due     map[types.UID]bool
	waiting time.Time
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
	return ctrl.NewControllerManagedBy(mgr).
		Named(c.Name()).
		Watches(&quotav1.ClusterResourceQuota{}, all, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&admissionregistrationv1.ValidatingWebhookConfiguration{}, all, builder.WithPredicates(ours)).
		WatchesRawSource(c.options.SettingsChanged.Source()).
		WatchesRawSource(source.Func(atTheStart)).
		Complete(c)
}

// atTheStart asks for the configuration where there is no quota yet: the first
// one is to be validated too.
func atTheStart(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: reach.ConfigurationName}})
	return nil
}

// Reconcile makes the configuration ask about what the quotas limit now, where
// they limit it, whoever has edited it. What it asks about besides, internal/reach tells.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	settings := c.options.Settings()
	is := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	err := c.client.Get(ctx, client.ObjectKey{Name: reach.ConfigurationName}, is)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading the webhook configuration: %w", err)
	}
	missing := err != nil
	quotas, err := c.quotas(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	c.versions.Date(settings, is, quotas)
	c.observe(settings, is, quotas)
	if settings.Endpoint.CABundle == nil {
		return reconcile.Result{}, nil // nobody could be called yet; the trigger tells when
	}
	began := c.clock.Now()
	settings, due := settings.WithToken(is, c.exposed.Load(), began)
	wanted := c.wanted(settings, is, quotas)
	upToDate := !missing && alike(is, wanted)
	if !upToDate {
		c.begin(settings, is, missing, quotas)
	}
	c.begun = true
	failed := c.forget(ctx, quotas)
	if upToDate || failed != nil && c.clock.Since(c.waiting) < forgetPatience {
		return c.again(due, failed), failed
	}
	if err := c.replace(ctx, settings, wanted, began); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, failed
}

// again asks for the reconcile that replaces the token; a failure asks for one itself.
func (c *Controller) again(due time.Time, failed error) reconcile.Result {
	if failed != nil {
		return reconcile.Result{}
	}
	return reconcile.Result{RequeueAfter: max(due.Sub(c.clock.Now()), time.Second)}
}

// replace writes the configuration, unless somebody has written another one meanwhile,
// which asks for the next reconcile.
func (c *Controller) replace(
	ctx context.Context, settings reach.Settings, wanted *admissionregistrationv1.ValidatingWebhookConfiguration, began time.Time,
) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := c.write(ctx, settings, wanted)
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

// observe tells the proofs what is in the cluster.
func (c *Controller) observe(settings reach.Settings, is *admissionregistrationv1.ValidatingWebhookConfiguration, quotas []reach.Quota) {
	coverages := make([]reach.Coverage, 0, len(quotas))
	for _, quota := range quotas {
		coverages = append(coverages, settings.Coverage(is, quota))
	}
	edition, _ := settings.Edition(is)
	c.options.Observed(c.options.Proofs.Observe(is.UID, is.Generation, edition, quotas, coverages, c.clock.Now()))
}

// begin notes which quotas have to be counted anew, because the API server may not have
// asked about them while nobody counted: objects may have been stored, maybe for long, as
// where the operator had been removed. Without a configuration these are all. If somebody
// edited it before this controller started, these are those that it doesn't cover. What
// happens afterwards is counted as it happens.
func (c *Controller) begin(
	settings reach.Settings, is *admissionregistrationv1.ValidatingWebhookConfiguration, missing bool, quotas []reach.Quota,
) {
	if c.due == nil {
		c.due = map[types.UID]bool{}
	}
	_, ours := settings.Edition(is)
	for _, quota := range quotas {
		if missing || !c.begun && !ours && settings.Coverage(is, quota) == reach.Missing {
			c.due[quota.UID] = true
		}
	}
}

// forget has what is used forgotten of the quotas of which it is due. It comes before the
// configuration is written. If it goes on failing for some, the configuration is written
// all the same, because otherwise nobody would be asked about any quota.
func (c *Controller) forget(ctx context.Context, quotas []reach.Quota) error {
	if len(c.due) == 0 {
		c.waiting = time.Time{}
		return nil
	}
	if c.waiting.IsZero() {
		c.waiting = c.clock.Now()
	}
	still := map[types.UID]bool{}
	var mu sync.Mutex // guards still and failures
	var failures []error
	var writes errgroup.Group
	writes.SetLimit(forgetsAtOnce)
	for _, quota := range quotas {
		if !c.due[quota.UID] {
			continue
		}
		writes.Go(func() error {
			if err := c.options.Forget(ctx, quota.Name, quota.UID); err != nil {
				mu.Lock()
				defer mu.Unlock()
				still[quota.UID] = true
				failures = append(failures, err)
			}
			return nil
		})
	}
	_ = writes.Wait() // each failure is kept
	c.due = still
	if len(failures) == 0 {
		c.waiting = time.Time{}
	}
	return errors.Join(failures...)
}

// wanted returns the configuration that is to replace the one in the cluster. If that
// asks about the same, it is of the same edition; otherwise it is of the next.
func (c *Controller) wanted(
	settings reach.Settings, is *admissionregistrationv1.ValidatingWebhookConfiguration, quotas []reach.Quota,
) *admissionregistrationv1.ValidatingWebhookConfiguration {
	webhooks, exact := settings.Webhooks(quotas)
	wanted := &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta: metav1.TypeMeta{
			APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration",
		},
		ObjectMeta: metav1.ObjectMeta{
			Name: reach.ConfigurationName, OwnerReferences: c.options.Owners, ResourceVersion: is.ResourceVersion,
			Annotations: settings.Annotations(exact),
		},
	}
	if edition, current := settings.Edition(is); current {
		wanted.Webhooks = append(slices.Clip(webhooks), settings.Probe(edition))
		if alike(is, wanted) {
			return wanted
		}
	}
	wanted.Webhooks = append(slices.Clip(webhooks), settings.Probe(reach.NextEdition(is)))
	return wanted
}

// alike tells whether two configurations ask about the same, and go with the same.
func alike(is, wanted *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
	return apiequality.Semantic.DeepEqual(is.Webhooks, wanted.Webhooks) &&
		apiequality.Semantic.DeepEqual(is.OwnerReferences, wanted.OwnerReferences) &&
		reach.Annotated(is, wanted)
}

// write applies the configuration, unless somebody else has written it meanwhile.
// What others have added to it, which an apply leaves alone, is removed by an update.
func (c *Controller) write(
	ctx context.Context, settings reach.Settings, wanted *admissionregistrationv1.ValidatingWebhookConfiguration,
) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(wanted)
	if err != nil {
		return fmt.Errorf("converting it: %w", err)
	}
	applied := &unstructured.Unstructured{Object: content}
	applied.SetManagedFields(nil)
	unstructured.RemoveNestedField(applied.Object, "metadata", "creationTimestamp")
	err = c.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.ForceOwnership, client.FieldOwner(fieldOwner))
	if err != nil {
		return fmt.Errorf("applying it: %w", err)
	}
	is := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(applied.Object, is); err != nil {
		return fmt.Errorf("reading what was applied: %w", err)
	}
	if alike(is, wanted) {
		return nil
	}
	generated := len(wanted.Webhooks) - 1 // the last is that of the edition
	is.Webhooks = append(slices.Clone(wanted.Webhooks[:generated]), settings.Probe(reach.NextEdition(is)))
	is.OwnerReferences = wanted.OwnerReferences
	if err := c.client.Update(ctx, is); err != nil {
		return fmt.Errorf("removing what others added: %w", err)
	}
	return nil
}

// quotas are what there is to ask about. A quota that is invalid limits what can be
// read of it: without an entry, nobody would be asked about what must be refused.
func (c *Controller) quotas(ctx context.Context) ([]reach.Quota, error) {
	list := &quotav1.ClusterResourceQuotaList{}
	if err := c.client.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing quotas: %w", err)
	}
	quotas := make([]reach.Quota, 0, len(list.Items))
	for i := range list.Items {
		if quota := &list.Items[i]; quota.DeletionTimestamp.IsZero() {
			quotas = append(quotas, c.quota(quota))
		}
	}
	return quotas, nil
}

func (c *Controller) quota(object *quotav1.ClusterResourceQuota) reach.Quota {
	defined := definition.Salvage(object)
	tracked, _ := c.evaluators.Resources(defined.Limits.Hard)
	return reach.Quota{
		Name: object.Name, UID: object.UID, Generation: object.Generation,
		Version:  resourceversion.Parse(object.ResourceVersion),
		Selector: defined.Selector, Limited: slices.Collect(maps.Keys(tracked)),
	}
}
