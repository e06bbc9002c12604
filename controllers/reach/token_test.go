// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/controllers/trigger"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/reach"
)

// tokened is a controller, and the configuration that it writes.
type tokened struct {
	*Controller
	now    *clocktesting.FakeClock
	server client.Client
	// conflict: somebody else writes first.
	conflict bool
	writes   int
	bundle   []byte
	forgets  forgets
	proofs   *reach.Proofs
}

func newTokened(t *testing.T, objects ...client.Object) *tokened {
	t.Helper()
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{quotav1.AddToScheme, admissionregistrationv1.AddToScheme, corev1.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	c := &tokened{now: clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0)), bundle: []byte("authority")}
	c.server = fake.NewClientBuilder().WithScheme(known).WithObjects(objects...).WithReturnManagedFields().WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(ctx context.Context, api client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			if c.conflict {
				return apierrors.NewConflict(schema.GroupResource{}, reach.ConfigurationName, nil)
			}
			before, current := &admissionregistrationv1.ValidatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
			if err := client.IgnoreNotFound(api.Get(ctx, client.ObjectKey{Name: reach.ConfigurationName}, before)); err != nil {
				return err
			}
			if err := api.Apply(ctx, object, options...); err != nil {
				return err
			}
			if err := api.Get(ctx, client.ObjectKey{Name: reach.ConfigurationName}, current); err != nil {
				return err
			}
			c.writes++
			current.Generation = before.Generation + 1 // the API server counts, and this one doesn't
			return api.Update(ctx, current)
		},
	}).Build()
	c.restart()
	return c
}

// restart puts a controller into the place of the one before.
func (c *tokened) restart() {
	c.proofs = &reach.Proofs{}
	c.Controller = NewController(c.now, c.server, evaluation.New(c.now, evaluation.ClaimSources{}), Options{
		Define: definition.Salvage,
		Settings: func() reach.Settings {
			current := settings()
			current.Endpoint.CABundle = c.bundle
			return current
		},
		Forget: c.forgets.forget,
		Proofs: c.proofs, Observed: func([]string) {}, SettingsChanged: &trigger.Trigger{},
	})
}

// reconciled returns the token after a reconcile, and when the next one is due.
func (c *tokened) reconciled(t *testing.T) (reach.Token, time.Duration) {
	t.Helper()
	var result reconcile.Result
	for range 2 { // The write asks for another one.
		var err error
		if result, err = c.Reconcile(t.Context(), reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	current := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := c.server.Get(t.Context(), client.ObjectKey{Name: reach.ConfigurationName}, current); err != nil {
		t.Fatal(err)
	}
	tokens := reach.Tokens(current)
	if len(tokens) != 1 {
		t.Fatalf("got %d tokens", len(tokens))
	}
	return tokens[0], result.RequeueAfter
}

func TestTheTokenIsReplacedWhenItMayBeKnown(t *testing.T) {
	c := newTokened(t)
	token, again := c.reconciled(t)
	if again != time.Hour {
		t.Errorf("again after %s, want an hour", again)
	}
	want := func(why string, replaced bool, due time.Duration) {
		t.Helper()
		got, again := c.reconciled(t)
		if (got != token) != replaced || again != due {
			t.Errorf("%s: replaced %t, want %t; again after %s, want %s", why, got != token, replaced, again, due)
		}
		token = got
	}
	want("nothing has happened", false, time.Hour)
	c.now.Step(time.Hour)
	want("an hour later", true, time.Hour)
	c.now.Step(20 * time.Second)
	c.Exposed()
	want("an outage, and it is young", false, 40*time.Second)
	c.now.Step(40 * time.Second)
	want("it is a minute old", true, time.Hour)
	c.bundle = []byte("another authority")
	want("the Secret was deleted", true, time.Hour)
	c.now.Step(10 * time.Minute)
	c.restart()
	want("another leads", true, time.Hour)

	c.now.Step(10 * time.Minute)
	c.Exposed()
	c.conflict = true
	want("somebody else writes", false, 0)
	c.conflict = false
	want("nobody does any more", true, time.Hour)
}
