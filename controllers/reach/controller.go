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
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/controllers/trigger"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/reach"
)

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,verbs=get;list;watch;create;update

// Authority is whom the API server must trust to call the webhooks.
type Authority interface {
	// Bundle returns CA certificates in PEM; nil until there is one.
	Bundle() []byte
	// OnChange has changed called whenever Bundle returns something else.
	OnChange(changed func())
}

// Controller writes the webhook configuration.
type Controller struct {
	client     client.Client
	evaluators *evaluation.Evaluators
	authority  Authority
	endpoint   reach.Endpoint
	paths      reach.Paths
	protected  []string
}

// NewController makes the controller. Objects in protected namespaces are
// never asked about.
func NewController(
	client client.Client, evaluators *evaluation.Evaluators, authority Authority,
	endpoint reach.Endpoint, paths reach.Paths, protected []string,
) *Controller {
	return &Controller{
		client: client, evaluators: evaluators, authority: authority, endpoint: endpoint, paths: paths, protected: protected,
	}
}

// Name returns the controller's name.
func (*Controller) Name() string { return "reach" }

// Register adds the controller to the manager. All its events ask for the one
// configuration.
func (c *Controller) Register(mgr ctrl.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: reach.ConfigurationName}}}
	})
	trusted := &trigger.Trigger{}
	c.authority.OnChange(func() { trusted.Fire([]string{reach.ConfigurationName}) })
	ours := predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetName() == reach.ConfigurationName })
	return ctrl.NewControllerManagedBy(mgr).
		Named(c.Name()).
		Watches(&quotav1.ClusterResourceQuota{}, all, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&admissionregistrationv1.ValidatingWebhookConfiguration{}, all, builder.WithPredicates(ours)).
		WatchesRawSource(source.Func(atTheStart)).
		WatchesRawSource(trusted.Source()).
		Complete(c)
}

// atTheStart asks for the configuration where there is no quota yet: the first
// one is to be validated too.
func atTheStart(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: reach.ConfigurationName}})
	return nil
}

// Reconcile makes the configuration cover what the quotas limit now.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	endpoint := c.endpoint
	endpoint.CABundle = c.authority.Bundle()
	if endpoint.CABundle == nil {
		return reconcile.Result{}, nil // nobody could be called yet; the authority tells when
	}
	limited, err := c.limited(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	wanted := reach.Webhooks(endpoint, c.paths, limited, c.protected)
	is := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: reach.ConfigurationName}}
	err = c.client.Get(ctx, client.ObjectKeyFromObject(is), is)
	switch {
	case apierrors.IsNotFound(err):
		is.Webhooks = wanted
		err = c.client.Create(ctx, is)
	case err == nil && !apiequality.Semantic.DeepEqual(is.Webhooks, wanted):
		is = is.DeepCopy()
		is.Webhooks = wanted
		err = c.client.Update(ctx, is)
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return reconcile.Result{}, nil // what the cache has yet to see asks again
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("writing the webhook configuration: %w", err)
	}
	return reconcile.Result{}, nil
}

// limited lists what any quota limits. An invalid quota limits nothing, but to
// ask about its resources does no harm.
func (c *Controller) limited(ctx context.Context) ([]schema.GroupResource, error) {
	quotas := &quotav1.ClusterResourceQuotaList{}
	if err := c.client.List(ctx, quotas); err != nil {
		return nil, fmt.Errorf("listing quotas: %w", err)
	}
	var limited []schema.GroupResource
	for i := range quotas.Items {
		tracked, _ := c.evaluators.Resources(quotas.Items[i].Spec.Quota.Hard)
		for resource := range tracked {
			limited = append(limited, resource)
		}
	}
	return limited, nil
}
