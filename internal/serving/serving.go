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

// Package serving says where and with which certificate the webhooks are
// served, and how the API server reaches them.
package serving

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/sharedquota/shared-quota-operator/internal/reach"
)

var errWhere = errors.New("give either --webhook-url, or --webhook-service with --cert-dir")

// Options say how the webhooks are reached.
type Options struct {
	// URL is the base URL that the API server calls; empty for a Service.
	URL string
	// Service is NAMESPACE/NAME of the Service that the API server calls.
	Service string
	// Port is the local port.
	Port int
	// CertDir holds tls.crt, tls.key and ca.crt. Without it a certificate is
	// made for the host of the URL, which lives as long as the process.
	CertDir string
}

// Server returns the webhook server and the endpoint to register for it.
func Server(options Options) (webhook.Server, reach.Endpoint, error) {
	switch {
	case options.URL != "" && options.Service == "" && options.CertDir == "":
		return selfSigned(options)
	case (options.URL == "") != (options.Service == "") && options.CertDir != "":
		return certified(options)
	default:
		return nil, reach.Endpoint{}, errWhere
	}
}

// certified serves with the certificate that the installation provides. The
// server reloads it when it changes.
func certified(options Options) (webhook.Server, reach.Endpoint, error) {
	authority, err := os.ReadFile(filepath.Join(options.CertDir, "ca.crt"))
	if err != nil {
		return nil, reach.Endpoint{}, fmt.Errorf("reading the webhook's certificate authority: %w", err)
	}
	endpoint := reach.Endpoint{CABundle: authority}
	if options.Service != "" {
		part := strings.Split(options.Service, "/")
		if len(part) != 2 || part[0] == "" || part[1] == "" {
			return nil, reach.Endpoint{}, fmt.Errorf("--webhook-service %q: want NAMESPACE/NAME", options.Service)
		}
		endpoint.Namespace, endpoint.Name = part[0], part[1]
	} else if _, err := hostOf(options.URL); err != nil {
		return nil, reach.Endpoint{}, err
	}
	endpoint.URL = strings.TrimSuffix(options.URL, "/")
	return webhook.NewServer(webhook.Options{Port: options.Port, CertDir: options.CertDir}), endpoint, nil
}

// hostOf returns the host of a URL that the API server can be told to call.
func hostOf(text string) (string, error) {
	base, err := url.Parse(text)
	if err != nil || base.Scheme != "https" || base.Hostname() == "" ||
		base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return "", fmt.Errorf("--webhook-url %q: want https://HOST:PORT", text)
	}
	return base.Hostname(), nil
}

// selfSigned serves with a certificate of its own on the URL's host alone.
func selfSigned(options Options) (webhook.Server, reach.Endpoint, error) {
	host, err := hostOf(options.URL)
	if err != nil {
		return nil, reach.Endpoint{}, err
	}
	var addresses []net.IP
	if address := net.ParseIP(host); address != nil {
		addresses = append(addresses, address)
	}
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey(host, addresses, nil)
	if err != nil {
		return nil, reach.Endpoint{}, fmt.Errorf("making a certificate for %s: %w", host, err)
	}
	certificate, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, reach.Endpoint{}, fmt.Errorf("loading the certificate made for %s: %w", host, err)
	}
	server := webhook.NewServer(webhook.Options{
		Host: host, Port: options.Port,
		TLSOpts: []func(*tls.Config){func(config *tls.Config) {
			config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certificate, nil }
		}},
	})
	return server, reach.Endpoint{URL: strings.TrimSuffix(options.URL, "/"), CABundle: certPEM}, nil
}
