// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// configured is a webhook configuration with one entry for each client.
func configured(clients ...admissionregistrationv1.WebhookClientConfig) *admissionregistrationv1.ValidatingWebhookConfiguration {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhookconfig.ConfigurationName}}
	for _, one := range clients {
		configuration.Webhooks = append(configuration.Webhooks, admissionregistrationv1.ValidatingWebhook{ClientConfig: one})
	}
	return configuration
}

func byService(bundle []byte) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{Namespace: "operator", Name: "webhook"}, CABundle: bundle,
	}
}

func byURL(url string, bundle []byte) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{URL: ptr.To(url), CABundle: bundle}
}

// serve presents the certificates on loopback, and returns the address.
func serve(t *testing.T, certificates *Certificates) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificates.Present}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", server.TLS)
	if err != nil {
		t.Fatal(err)
	}
	server.Listener = listener
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // callers judge
	server.Start()
	t.Cleanup(server.Close)
	return listener.Addr().String()
}

func TestAReplicaIsReadyWhenTheAPIServerWouldAcceptIt(t *testing.T) {
	mine, another := content(t, nil), content(t, nil)
	authority, foreign := mine[AuthorityKey], another[AuthorityKey]
	both := append(append([]byte{}, foreign...), authority...)
	const distrust = "the ValidatingWebhookConfiguration shared-quota does not trust the webhook's certificate for "
	for name, test := range map[string]struct {
		configuration *admissionregistrationv1.ValidatingWebhookConfiguration
		at            time.Time
		want          string
	}{
		"it is called by the Service's name":  {configuration: configured(byService(authority))},
		"it is called by a URL":               {configuration: configured(byURL("https://"+testHost+":9443/objects", authority))},
		"another authority is trusted too":    {configuration: configured(byService(both), byService(both))},
		"there is no configuration":           {want: errNotConfigured.Error()},
		"the configuration makes no call":     {configuration: configured(), want: errNotConfigured.Error()},
		"another authority alone is trusted":  {configuration: configured(byService(foreign)), want: distrust + `"webhook.operator.svc": `},
		"one of the entries trusts another":   {configuration: configured(byService(both), byService(foreign)), want: distrust},
		"no authority is trusted":             {configuration: configured(byService(nil)), want: "its caBundle holds no certificate"},
		"another host is called":              {configuration: configured(byURL("https://other:9443", authority)), want: distrust + `"other": `},
		"a URL that isn't one":                {configuration: configured(byURL("https://%zz", authority)), want: "it names no host"},
		"the certificate has ended meanwhile": {configuration: configured(byService(authority)), at: start.AddDate(2, 0, 0), want: "expired"},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(start)
			certificates := NewCertificates(clock)
			certificates.Update(material(t, mine), nil)
			if !test.at.IsZero() {
				clock.SetTime(test.at)
			}
			building := fake.NewClientBuilder()
			if test.configuration != nil {
				building = building.WithObjects(test.configuration)
			}
			requireError(t, certificates.Ready(building.Build(), serve(t, certificates))(probe(t)), test.want)
		})
	}
}

func TestAReplicaThatDoesNotServeIsNotReady(t *testing.T) {
	certificates := NewCertificates(clocktesting.NewFakePassiveClock(start))
	address := serve(t, certificates)
	mine := content(t, nil)
	reader := fake.NewClientBuilder().WithObjects(configured(byService(mine[AuthorityKey]))).Build()
	ready := certificates.Ready(reader, address)
	requireError(t, ready(probe(t)), errNoCertificate.Error())
	certificates.Update(material(t, mine), nil)
	requireError(t, ready(probe(t)), "")

	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	closed := listener.Addr().String()
	requireError(t, certificates.Ready(reader, closed)(probe(t)), "connecting to the webhooks at "+closed+": ")

	broken := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("no cache")
		},
	})
	requireError(t, certificates.Ready(broken, address)(probe(t)), "reading the webhook configuration: no cache")
}

func probe(t *testing.T) *http.Request {
	t.Helper()
	return httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", http.NoBody)
}

// requireError wants an error that contains the text, or none for an empty one.
func requireError(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" && err != nil {
		t.Errorf("got error %v, want none", err)
	}
	if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("got error %v, want one with %q", err, want)
	}
}
