// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

type configuration = admissionregistrationv1.ValidatingWebhookConfiguration

// bench is a controller on an API server, in a synctest bubble.
type bench struct {
	*Controller
	t      *testing.T
	server client.Client
	proofs *webhookconfig.Proofs
	bundle []byte
	policy admissionregistrationv1.FailurePolicyType
	// cached is the configuration in the cache; nil if it is up to date.
	cached *configuration
	// harm changes the stored configuration after a write of the controller.
	harm func(*configuration)
	// failure is that of the controller's writes, unforgotten that of Forget, and deposed that of Leads.
	failure, unforgotten, deposed error
	// owner is the UID of the operator's namespace; empty if there is none.
	owner types.UID
	// forgetting is how long Forget takes.
	forgetting time.Duration
	// writes are the controller's, each of which is of another edition; forgets are the quotas whose use was forgotten.
	writes   int
	editions []webhookconfig.Edition
	forgets  []string
}

func onBench(t *testing.T, test func(t *testing.T, b *bench), objects ...client.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		known := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{quotav1.AddToScheme, admissionregistrationv1.AddToScheme} {
			if err := add(known); err != nil {
				t.Fatal(err)
			}
		}
		b := &bench{t: t, bundle: []byte("authority"), policy: admissionregistrationv1.Fail}
		b.server = fake.NewClientBuilder().WithScheme(known).WithObjects(objects...).WithReturnManagedFields().
			WithInterceptorFuncs(interceptor.Funcs{Get: b.get, Create: b.create, Update: b.update}).Build()
		b.restart()
		test(t, b)
	})
}

// restart puts a controller into the place of the one before.
func (b *bench) restart() {
	b.proofs = &webhookconfig.Proofs{}
	b.Controller = NewController(bubble, b.server, evaluation.New(bubble, evaluation.ClaimSources{}), Options{
		Define: definition.Salvage, Judged: areMade,
		Settings: func() webhookconfig.Settings {
			current := settings()
			current.Endpoint.CABundle, current.FailurePolicy = b.bundle, b.policy
			return current
		},
		Forget: func(_ context.Context, quota string, _ types.UID) error {
			b.forgets = append(b.forgets, quota)
			bubble.Sleep(b.forgetting)
			return b.unforgotten
		},
		Owners: func(context.Context) ([]metav1.OwnerReference, error) {
			if b.owner == "" {
				return nil, nil
			}
			return []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "operator", UID: b.owner}}, nil
		},
		Leads:  func(context.Context) error { return b.deposed },
		Proofs: b.proofs, Observed: func([]string) {}, Look: func(time.Duration) {},
	})
}

func (b *bench) get(ctx context.Context, api client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	current, ok := into.(*configuration)
	if !ok || b.cached == nil {
		return api.Get(ctx, key, into, options...)
	}
	if b.cached.Name == "" {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	b.cached.DeepCopyInto(current)
	return nil
}

func (b *bench) create(ctx context.Context, api client.WithWatch, object client.Object, options ...client.CreateOption) error {
	if _, ok := object.(*configuration); ok {
		object.SetGeneration(1)
		object.SetUID(types.UID(bubble.Now().String()))
	}
	return b.written(object, api.Create(ctx, object, options...))
}

// update counts generations, as the API server does.
func (b *bench) update(ctx context.Context, api client.WithWatch, object client.Object, options ...client.UpdateOption) error {
	next, ok := object.(*configuration)
	if !ok {
		return api.Update(ctx, object, options...)
	}
	chosen := (&client.UpdateOptions{}).ApplyOptions(options)
	own := chosen.FieldManager == fieldOwner
	if own && b.harm != nil {
		b.harm(next)
	}
	current := &configuration{}
	if err := api.Get(ctx, client.ObjectKeyFromObject(next), current); err != nil {
		return err
	}
	if next.Generation = current.Generation; !apiequality.Semantic.DeepEqual(next.Webhooks, current.Webhooks) {
		next.Generation++
	}
	if !own {
		return api.Update(ctx, next, options...)
	}
	if b.failure != nil {
		return b.failure
	}
	return b.written(object, api.Update(ctx, next, options...))
}

func (b *bench) written(object client.Object, err error) error {
	if current, ok := object.(*configuration); ok && err == nil {
		b.writes++
		if edition, ok := settings().Edition(current); b.harm == nil && (!ok || slices.Contains(b.editions, edition)) {
			b.t.Errorf("it is written as %v after %v", edition, b.editions)
		} else {
			b.editions = append(b.editions, edition)
		}
	}
	return err
}

// reconciles returns when to do so again.
func (b *bench) reconciles() time.Duration {
	b.t.Helper()
	result, err := b.Reconcile(b.t.Context(), reconcile.Request{})
	if err != nil {
		b.t.Fatal(err)
	}
	synctest.Wait() // uses are forgotten in the background
	return result.RequeueAfter
}

// settles reconciles until there is nothing to do at once, and has the API server load that.
func (b *bench) settles() webhookconfig.Verdict {
	b.t.Helper()
	for range 4 {
		b.reconciles()
	}
	if edition, some := b.proofs.Wanted(); some {
		b.proofs.Answered(edition, bubble.Now())
	}
	return b.proofs.Of("team", "uid", 1, bubble.Now())
}

func (b *bench) configuration() *configuration {
	b.t.Helper()
	current := &configuration{}
	if err := b.server.Get(b.t.Context(), client.ObjectKey{Name: webhookconfig.ConfigurationName}, current); err != nil {
		b.t.Fatal(err)
	}
	return current
}

// edits changes the configuration as another client would.
func (b *bench) edits(edit func(*configuration)) {
	b.t.Helper()
	current := b.configuration()
	edit(current)
	if err := b.server.Update(b.t.Context(), current, client.FieldOwner("enforcer")); err != nil {
		b.t.Fatal(err)
	}
}

func teamQuota() *quotav1.ClusterResourceQuota {
	quota := &quotav1.ClusterResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team", UID: "uid", Generation: 1}}
	quota.Spec.Selector.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}
	quota.Spec.Quota.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}
	return quota
}
