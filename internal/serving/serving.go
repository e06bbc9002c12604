// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// DefaultSecret is the name of the Secret of a Service's certificate. The Role
// in config/rbac names it too.
const DefaultSecret = "shared-quota-webhook-cert"

var (
	errWhere = errors.New("give either --webhook-url or --webhook-service")
	errBoth  = errors.New("give --cert-dir or --cert-secret, not both")
	errOwn   = errors.New("--cert-secret: the operator must know its namespace; give --namespace")
)

// Options say how the webhooks are reached, and where their certificate is.
type Options struct {
	// URL is the base URL that the API server calls; empty for a Service.
	URL string
	// Service is NAMESPACE/NAME of the Service that the API server calls.
	Service string
	// BindAddress is the local IP address; empty for all of this host's, but for that
	// of URL where the certificate lives as long as the process.
	BindAddress string
	// Port is the local port.
	Port int
	// CertDir holds tls.crt, tls.key and ca.crt, which the installation provides.
	CertDir string
	// CertSecret is the name of a Secret in which the operator keeps an authority
	// and a certificate. It is DefaultSecret for a Service without CertDir. Without
	// either, a certificate is made for the URL that lives as long as the process.
	CertSecret string
	// ClientCAFile holds authorities, in PEM: callers must present a certificate by one of
	// them. Empty for callers without.
	ClientCAFile string
	// Namespace is the operator's own, where the Secret is.
	Namespace string
}

// Setup is how the webhooks are served.
type Setup struct {
	Server *Server
	// Callers decides which callers are answered.
	Callers *Callers
	// Endpoint is where the API server calls. Certificates has the authorities
	// that it must trust.
	Endpoint     webhookconfig.Endpoint
	Certificates *Certificates
	// Directory is where the certificate comes from; empty for elsewhere.
	Directory Directory
	// Secret is where the certificate is kept; its name is empty for nowhere.
	Secret types.NamespacedName
	// Hosts are the names that the certificate is for, first that by which the
	// API server calls.
	Hosts []string
	// Address is where this process reaches its own server.
	Address string
}

// New says how the webhooks must be served.
func New(clock clock.Clock, options Options) (*Setup, error) {
	setup := &Setup{Certificates: NewCertificates(clock), Callers: NewCallers(clock)}
	if err := setup.place(options); err != nil {
		return nil, err
	}
	listen, err := setup.certify(options)
	if err != nil {
		return nil, err
	}
	handshake := []func(*tls.Config){func(config *tls.Config) { config.GetCertificate = setup.Certificates.Present }}
	if options.ClientCAFile != "" {
		verify, err := clientAuthorities(options.ClientCAFile).verify()
		if err != nil {
			return nil, err
		}
		handshake = append(handshake, verify)
	}
	setup.Address = addressOf(listen, strconv.Itoa(options.Port))
	listening := webhook.Options{Host: listen, Port: options.Port, TLSOpts: handshake}
	setup.Server = newServer(listening, setup.Callers, options.ClientCAFile != "")
	return setup, nil
}

// certify says where the certificate comes from, and returns where to listen.
func (s *Setup) certify(options Options) (listen string, err error) {
	switch {
	case options.CertDir != "" && options.CertSecret != "":
		return "", errBoth
	case options.CertDir != "":
		s.Directory = Directory(options.CertDir)
		return options.BindAddress, s.Certificates.PresentFrom(s.Directory)
	case options.CertSecret != "" || options.Service != "":
		return options.BindAddress, s.keep(options)
	default:
		// The certificate is for this host alone.
		return cmp.Or(options.BindAddress, s.Hosts[0]), s.Certificates.SelfSign(s.Hosts[0])
	}
}

// place says where the API server calls. It is an error if the operator can't serve
// where it is told to.
func (s *Setup) place(options Options) error {
	if options.BindAddress != "" && net.ParseIP(options.BindAddress) == nil {
		return fmt.Errorf("--webhook-bind-address %q: want an IP address", options.BindAddress)
	}
	switch {
	case (options.URL == "") == (options.Service == ""):
		return errWhere
	case options.URL != "":
		host, err := hostOf(options.URL)
		if err != nil {
			return err
		}
		s.Endpoint.URL = strings.TrimSuffix(options.URL, "/")
		s.Hosts = []string{host}
	default:
		namespace, name, _ := strings.Cut(options.Service, "/")
		if namespace == "" || name == "" || strings.Contains(name, "/") {
			return fmt.Errorf("--webhook-service %q: want NAMESPACE/NAME", options.Service)
		}
		s.Endpoint.Namespace, s.Endpoint.Name = namespace, name
		host := ServiceHost(namespace, name)
		s.Hosts = []string{host, host + ".cluster.local", name + "." + namespace}
	}
	return nil
}

// keep says in which Secret the certificate is kept.
func (s *Setup) keep(options Options) error {
	if options.Namespace == "" {
		return errOwn
	}
	if net.ParseIP(s.Hosts[0]) != nil {
		return fmt.Errorf("--webhook-url %q: a certificate in a Secret is for a name, not for an address", options.URL)
	}
	s.Secret = types.NamespacedName{Namespace: options.Namespace, Name: options.CertSecret}
	if s.Secret.Name == "" {
		s.Secret.Name = DefaultSecret
	}
	return nil
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

// addressOf is where this process reaches a server that listens on a host.
func addressOf(host, port string) string {
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
