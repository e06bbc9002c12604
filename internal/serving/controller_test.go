// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/sharedquota/shared-quota-operator/internal/metrics"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

var (
	key     = types.NamespacedName{Namespace: "operator", Name: "webhook-cert"}
	secrets = schema.GroupResource{Resource: "secrets"}
)

func secretOf(t *testing.T, api client.Client) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	if err := api.Get(t.Context(), key, secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

func TestTheSecretIsMadeKeptAndRenewed(t *testing.T) {
	api := fake.NewClientBuilder().Build()
	clock := clocktesting.NewFakePassiveClock(start)
	secret := NewSecret(clock, api, key, NewIssuer("webhook.operator.svc"))
	load := func() time.Duration {
		t.Helper()
		material, again, err := secret.Load(t.Context())
		if err != nil || material == nil {
			t.Fatalf("got material %v, error %v", material, err)
		}
		return again
	}
	if again := load(); again != secretEvery {
		t.Errorf("again after %s, want %s", again, secretEvery)
	}
	made := secretOf(t, api)
	if made.Type != corev1.SecretTypeTLS {
		t.Errorf("got type %s, want %s", made.Type, corev1.SecretTypeTLS)
	}

	nearly := 365*24*time.Hour - Lookahead - time.Minute
	clock.SetTime(start.Add(nearly))
	if again := load(); again != time.Minute+time.Second {
		t.Errorf("a minute before it is due, again after %s", again)
	}
	if diff := cmp.Diff(made, secretOf(t, api)); diff != "" {
		t.Errorf("it was written without need (-want,+got):\n%s", diff)
	}
	clock.SetTime(start.Add(nearly + time.Minute + time.Second))
	load()
	renewed := secretOf(t, api)
	if bytes.Equal(renewed.Data[CertKey], made.Data[CertKey]) {
		t.Error("the certificate was not renewed when due")
	}
	if diff := cmp.Diff(made.Data[AuthorityKey], renewed.Data[AuthorityKey]); diff != "" {
		t.Errorf("authority (-want,+got):\n%s", diff)
	}
}

// After any write between reading and writing, the Secret of the first replica
// stays, and the other one takes it over.
func TestOfTwoReplicasOneWins(t *testing.T) {
	for name, there := range map[string]bool{"no Secret yet": false, "a Secret that is empty": true} {
		t.Run(name, func(t *testing.T) {
			building := fake.NewClientBuilder()
			if there {
				building = building.WithObjects(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
			}
			api := building.Build()
			clock := clocktesting.NewFakePassiveClock(start)
			first := NewSecret(clock, api, key, NewIssuer("webhook"))
			raced := false
			race := func(ctx context.Context) {
				if raced {
					return
				}
				raced = true
				if _, _, err := first.Load(ctx); err != nil {
					t.Error(err)
				}
			}
			late := interceptor.NewClient(api, interceptor.Funcs{
				Create: func(ctx context.Context, api client.WithWatch, object client.Object, options ...client.CreateOption) error {
					race(ctx)
					return api.Create(ctx, object, options...)
				},
				Update: func(ctx context.Context, api client.WithWatch, object client.Object, options ...client.UpdateOption) error {
					race(ctx)
					return api.Update(ctx, object, options...)
				},
			})
			second := NewSecret(clock, late, key, NewIssuer("webhook"))
			if _, _, err := second.Load(t.Context()); !errors.Is(err, errElsewhere) {
				t.Fatalf("got error %v, want that someone else wrote it", err)
			}
			won := secretOf(t, api)
			if _, _, err := second.Load(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(won, secretOf(t, api)); diff != "" {
				t.Errorf("the winner's Secret was replaced (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestAFailureIsReported(t *testing.T) {
	lost := errors.New("connection lost")
	for name, test := range map[string]struct {
		get, write error
		want       string
		elsewhere  bool
	}{
		"a read":                       {get: lost, want: "reading Secret operator/webhook-cert: connection lost"},
		"a write":                      {write: lost, want: "writing Secret operator/webhook-cert: connection lost"},
		"a right that is missing":      {write: apierrors.NewForbidden(secrets, key.Name, nil), want: "writing Secret operator/webhook-cert: secrets"},
		"a namespace that is missing":  {write: apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, key.Namespace), want: "writing Secret"},
		"but not that another created": {write: apierrors.NewAlreadyExists(secrets, key.Name), elsewhere: true},
	} {
		t.Run(name, func(t *testing.T) {
			api := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					if test.get != nil {
						return test.get
					}
					return api.Get(ctx, key, object, options...)
				},
				Create: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.CreateOption) error {
					if _, bounded := ctx.Deadline(); !bounded {
						t.Error("the write has no deadline")
					}
					return test.write
				},
			})
			_, _, err := NewSecret(clocktesting.NewFakePassiveClock(start), api, key, NewIssuer("webhook")).Load(t.Context())
			if errors.Is(err, errElsewhere) != test.elsewhere || err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}

// canned is a source with given answers.
type canned struct {
	material *Material
	again    time.Duration
	err      error
}

func (c *canned) Load(context.Context) (*Material, time.Duration, error) {
	return c.material, c.again, c.err
}

// gauged is the end of the certificate as measured.
func gauged(t *testing.T, registry *prometheus.Registry) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "sharedquota_serving_certificate_expiry_timestamp_seconds" {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatal("there is no such metric")
	return 0
}

func TestReconcileTakesUpWhatTheAPIServerAccepts(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(start)
	material := func(host string) (*Material, []byte) {
		renewed, err := NewIssuer(host).Renew(nil, start)
		if err != nil {
			t.Fatal(err)
		}
		made, err := NewMaterial(
			renewed.Data[CertKey], renewed.Data[KeyKey], renewed.Data[AuthorityKey])
		if err != nil {
			t.Fatal(err)
		}
		return made, renewed.Data[AuthorityKey]
	}
	old, oldAuthority := material("webhook.operator.svc")
	next, nextAuthority := material("webhook.operator.svc")
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: webhookconfig.ConfigurationName},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{ClientConfig: admissionregistrationv1.WebhookClientConfig{
			Service:  &admissionregistrationv1.ServiceReference{Namespace: "operator", Name: "webhook"},
			CABundle: append(append([]byte{}, nextAuthority...), oldAuthority...),
		}}},
	}
	api := fake.NewClientBuilder().WithObjects(configuration).Build()
	registry := prometheus.NewRegistry()
	certificates := NewCertificates(clock)
	source := &canned{material: old, again: time.Hour}
	controller := NewController(api, certificates, source, metrics.New(registry).CertificateEnds)
	reconciled := func(want time.Duration) {
		t.Helper()
		result, err := controller.Reconcile(t.Context(), reconcile.Request{})
		if err != nil || result.RequeueAfter != want {
			t.Errorf("again after %s, error %v, want %s", result.RequeueAfter, err, want)
		}
	}

	reconciled(time.Hour)
	if end := old.NotAfter(); !certificates.NotAfter().Equal(end) {
		t.Errorf("presents what ends at %s, want %s", certificates.NotAfter(), end)
	}
	if got, want := gauged(t, registry), float64(old.NotAfter().Unix()); got != want {
		t.Errorf("metric: got %f, want %f", got, want)
	}

	source.material = next
	reconciled(5 * time.Second)
	source.again = 3 * time.Second
	reconciled(3 * time.Second)

	source.err = errElsewhere
	reconciled(retry)
	source.err = errors.New("no disk")
	if _, err := controller.Reconcile(t.Context(), reconcile.Request{}); err == nil ||
		err.Error() != "loading the webhook's certificate: no disk" {
		t.Errorf("got error %v, want that of the source", err)
	}
}
