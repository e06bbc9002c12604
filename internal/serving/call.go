// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// Call is how the API server calls a webhook.
type Call struct {
	// Host is the name that the certificate must have.
	Host string
	// Bundle has the authorities that the API server trusts, in PEM.
	Bundle string
}

// Calls reads from the webhook configuration how the API server calls: in one
// way if all is well, in none if it has not been told to yet.
func Calls(ctx context.Context, reader client.Reader) ([]Call, error) {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	err := reader.Get(ctx, client.ObjectKey{Name: webhookconfig.ConfigurationName}, configuration)
	if err := client.IgnoreNotFound(err); err != nil {
		return nil, fmt.Errorf("reading the webhook configuration: %w", err)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	var calls []Call
	for i := range configuration.Webhooks {
		if call := callOf(configuration.Webhooks[i].ClientConfig); !slices.Contains(calls, call) {
			calls = append(calls, call)
		}
	}
	return calls, nil
}

func callOf(config admissionregistrationv1.WebhookClientConfig) Call {
	call := Call{Bundle: string(config.CABundle)}
	if config.Service != nil {
		call.Host = ServiceHost(config.Service.Namespace, config.Service.Name)
	} else if base, err := url.Parse(ptr.Deref(config.URL, "")); err == nil {
		call.Host = base.Hostname()
	}
	return call
}

// ServiceHost is the name that the API server expects of a Service.
func ServiceHost(namespace, name string) string {
	return name + "." + namespace + ".svc"
}

var (
	errNoHost   = errors.New("it names no host")
	errNoBundle = errors.New("its caBundle holds no certificate")
)

// verify returns the reason for which the API server would refuse a certificate,
// given with the certificates that are presented along with it.
func (c Call) verify(chain []*x509.Certificate, now time.Time) error {
	if c.Host == "" {
		return errNoHost // any certificate would do for none
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(c.Bundle)) {
		return errNoBundle
	}
	for _, certificate := range chain[1:] {
		between.AddCert(certificate)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{DNSName: c.Host, Roots: roots, Intermediates: between, CurrentTime: now})
	return err //nolint:wrapcheck // it names the host and the reason
}

// trusted reports whether the API server is told to call, and would accept the
// certificate each time.
func trusted(calls []Call, material *Material, now time.Time) bool {
	return len(calls) > 0 && !slices.ContainsFunc(calls, func(call Call) bool {
		return call.verify(material.chain(), now) != nil
	})
}

// trustedBy lists the authorities that the API server trusts. A bundle that
// can't be read is no use to it either.
func trustedBy(calls []Call) []*x509.Certificate {
	var all []*x509.Certificate
	for _, call := range calls {
		if some, err := parseBundle([]byte(call.Bundle)); err == nil {
			all = with(all, some...)
		}
	}
	return all
}
