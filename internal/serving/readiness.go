// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// dialTimeout is for a handshake with this very process.
const dialTimeout = 3 * time.Second

var errNotConfigured = errors.New("there is no ValidatingWebhookConfiguration " + webhookconfig.ConfigurationName +
	" that calls the webhooks yet: the leader writes it; where it doesn't, its log tells why")

// Ready is a readiness check: the API server, as its webhook configuration is
// now, would accept the certificate presented at the address.
func (c *Certificates) Ready(reader client.Reader, address string) healthz.Checker {
	var mu sync.Mutex // guards said
	said := ""
	return func(request *http.Request) error {
		err := c.ready(request.Context(), reader, address)
		// The probe itself is told no more than that. Each state is logged once.
		state := "the API server accepts the webhook's certificate"
		if err != nil {
			state = "the webhooks are not ready: " + err.Error()
		}
		mu.Lock()
		defer mu.Unlock()
		if state != said {
			said = state
			log.FromContext(request.Context()).Info(state)
		}
		return err
	}
}

func (c *Certificates) ready(ctx context.Context, reader client.Reader, address string) error {
	if c.presented.Load() == nil {
		return errNoCertificate
	}
	calls, err := Calls(ctx, reader)
	if err != nil {
		return err
	}
	if len(calls) == 0 {
		return errNotConfigured
	}
	return c.handshake(ctx, address, calls)
}

// handshake connects as the API server does.
func (c *Certificates) handshake(ctx context.Context, address string, calls []Call) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	dialer := &tls.Dialer{Config: &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: calls[0].Host,
		// The presented certificate is verified with the authorities of each call
		// instead.
		InsecureSkipVerify: true, //nolint:gosec // see above
		VerifyConnection: func(state tls.ConnectionState) error {
			for _, call := range calls {
				if err := call.verify(state.PeerCertificates, c.clock.Now()); err != nil {
					return fmt.Errorf("the ValidatingWebhookConfiguration %s does not trust the webhook's certificate for %q: %w; "+
						"the leader writes its caBundle: where that doesn't help, see that all replicas are given the same certificate",
						webhookconfig.ConfigurationName, call.Host, err)
				}
			}
			return nil
		},
	}}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("connecting to the webhooks at %s: %w", address, err)
	}
	_ = connection.Close() // it has served
	return nil
}
