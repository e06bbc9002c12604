// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// directory has the files that an installation provides.
func directory(t *testing.T, content map[string][]byte) string {
	t.Helper()
	path := t.TempDir()
	for _, name := range []string{CertKey, KeyKey, AuthorityKey} {
		if err := os.WriteFile(filepath.Join(path, name), content[name], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestTheEndpointAndItsCertificateBySettings(t *testing.T) {
	given := directory(t, issued(t))
	service := webhookconfig.Endpoint{Namespace: "operator", Name: "webhook"}
	serviceHosts := []string{"webhook.operator.svc", "webhook.operator.svc.cluster.local", "webhook.operator"}
	for name, test := range map[string]struct {
		options Options
		want    Setup
		listen  string
	}{
		"a Service": {
			options: Options{Service: "operator/webhook", Namespace: "own"},
			want: Setup{
				Endpoint: service, Hosts: serviceHosts, Address: "127.0.0.1:9443",
				Secret: types.NamespacedName{Namespace: "own", Name: "shared-quota-webhook-cert"},
			},
		},
		"a Service, and a Secret of another name": {
			options: Options{Service: "operator/webhook", Namespace: "own", CertSecret: "mine"},
			want: Setup{
				Endpoint: service, Hosts: serviceHosts, Address: "127.0.0.1:9443",
				Secret: types.NamespacedName{Namespace: "own", Name: "mine"},
			},
		},
		"a Service, and a certificate from outside": {
			options: Options{Service: "operator/webhook", CertDir: given},
			want:    Setup{Endpoint: service, Hosts: serviceHosts, Address: "127.0.0.1:9443", Directory: Directory(given)},
		},
		"a Service, at one address of several": {
			options: Options{Service: "operator/webhook", Namespace: "own", BindAddress: "192.0.2.9"},
			want: Setup{
				Endpoint: service, Hosts: serviceHosts, Address: "192.0.2.9:9443",
				Secret: types.NamespacedName{Namespace: "own", Name: "shared-quota-webhook-cert"},
			},
			listen: "192.0.2.9",
		},
		"a URL of another address": {
			options: Options{URL: "https://192.0.2.7:443/", BindAddress: "2001:db8::9"},
			want: Setup{
				Endpoint: webhookconfig.Endpoint{URL: "https://192.0.2.7:443"}, Hosts: []string{"192.0.2.7"}, Address: "[2001:db8::9]:9443",
			},
			listen: "2001:db8::9",
		},
		"a URL": {
			options: Options{URL: "https://192.0.2.7:443/"},
			want: Setup{
				Endpoint: webhookconfig.Endpoint{URL: "https://192.0.2.7:443"}, Hosts: []string{"192.0.2.7"}, Address: "192.0.2.7:9443",
			},
			listen: "192.0.2.7",
		},
		"a URL, and a certificate from outside": {
			options: Options{URL: "https://quota.example", CertDir: given},
			want: Setup{
				Endpoint: webhookconfig.Endpoint{URL: "https://quota.example"}, Hosts: []string{"quota.example"}, Address: "127.0.0.1:9443",
				Directory: Directory(given),
			},
		},
		"a URL, and a Secret": {
			options: Options{URL: "https://localhost:443", CertSecret: "mine", Namespace: "own"},
			want: Setup{
				Endpoint: webhookconfig.Endpoint{URL: "https://localhost:443"}, Hosts: []string{"localhost"}, Address: "127.0.0.1:9443",
				Secret: types.NamespacedName{Namespace: "own", Name: "mine"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.options.Port = 9443
			setup, err := New(clock.RealClock{}, test.options)
			if err != nil {
				t.Fatal(err)
			}
			got := *setup
			got.Server, got.Callers, got.Certificates = nil, nil, nil
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("setup (-want,+got):\n%s", diff)
			}
			if options := setup.Server.options; options.Host != test.listen || options.Port != 9443 {
				t.Errorf("listens on %q port %d, want %q port 9443", options.Host, options.Port, test.listen)
			}
		})
	}
}

// The API server takes no webhook with some of these. Better to say so at the
// start than to fail at every write of the configuration.
func TestSettingsThatCannotBeServed(t *testing.T) {
	given := directory(t, issued(t))
	url := func(text string) string { return `--webhook-url "` + text + `": want https://HOST:PORT` }
	service := func(text string) string { return `--webhook-service "` + text + `": want NAMESPACE/NAME` }
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"nothing is said":              {want: errWhere.Error()},
		"both a URL and a Service":     {options: Options{URL: "https://a", Service: "b/c", CertDir: given}, want: errWhere.Error()},
		"a certificate for no host":    {options: Options{CertDir: given}, want: errWhere.Error()},
		"two places for a certificate": {options: Options{URL: "https://a", CertDir: given, CertSecret: "mine"}, want: errBoth.Error()},
		"a Secret in no namespace":     {options: Options{Service: "operator/webhook"}, want: errOwn.Error()},
		"a Secret for an address": {
			options: Options{URL: "https://127.0.0.1:9443", CertSecret: "mine", Namespace: "own"},
			want:    `--webhook-url "https://127.0.0.1:9443": a certificate in a Secret is for a name, not for an address`,
		},
		"a name to serve at": {
			options: Options{URL: "https://a", CertDir: given, BindAddress: "localhost"},
			want:    `--webhook-bind-address "localhost": want an IP address`,
		},
		"a Service without namespace":    {options: Options{Service: "webhook", CertDir: given}, want: service("webhook")},
		"a Service of half a name":       {options: Options{Service: "operator/", CertDir: given}, want: service("operator/")},
		"a Service of three parts":       {options: Options{Service: "ops/quota/443", CertDir: given}, want: service("ops/quota/443")},
		"a URL that isn't safe":          {options: Options{URL: "http://127.0.0.1:9443"}, want: url("http://127.0.0.1:9443")},
		"a URL without a host":           {options: Options{URL: "https://:9443", CertDir: given}, want: url("https://:9443")},
		"a URL that isn't one":           {options: Options{URL: "https://%zz"}, want: url("https://%zz")},
		"a URL with a query":             {options: Options{URL: "https://host?a=b"}, want: url("https://host?a=b")},
		"a URL with a fragment":          {options: Options{URL: "https://host#a"}, want: url("https://host#a")},
		"a URL with a user":              {options: Options{URL: "https://me@host"}, want: url("https://me@host")},
		"a directory that holds nothing": {options: Options{URL: "https://a", CertDir: t.TempDir()}, want: "no such file or directory"},
		"a directory that holds no tls.crt": {
			options: Options{URL: "https://a", CertDir: directory(t, nil)}, want: "reading the webhook's certificate: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(clock.RealClock{}, test.options)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error: got %v, want %s", err, test.want)
			}
		})
	}
}

// handshake verifies the server as the API server would.
func handshake(t *testing.T, setup *Setup, authority []byte, host string) error {
	t.Helper()
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	for _, change := range setup.Server.options.TLSOpts {
		change(config)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		t.Fatalf("no certificate in the bundle %q", authority)
	}
	near, far := net.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer far.Close()
		// The client judges; the server's error doesn't matter.
		_ = tls.Server(far, config).HandshakeContext(t.Context())
	}()
	client := tls.Client(near, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: host})
	err := client.HandshakeContext(t.Context())
	_ = near.Close()
	<-ended
	return err
}

func TestACertificateOfItsOwnIsForItsHostAlone(t *testing.T) {
	stranger, err := New(clock.RealClock{}, Options{URL: "https://quota.example"})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ url, host, another string }{
		"for a name":            {url: "https://quota.example:9443", host: "quota.example", another: "other.example"},
		"for an address":        {url: "https://192.0.2.7:9443/", host: "192.0.2.7", another: "192.0.2.8"},
		"for a path on an IPv6": {url: "https://[2001:db8::7]:9443/base", host: "2001:db8::7", another: "2001:db8::8"},
	} {
		t.Run(name, func(t *testing.T) {
			setup, err := New(clock.RealClock{}, Options{URL: test.url, Port: 9443})
			if err != nil {
				t.Fatal(err)
			}
			bundle := setup.Certificates.Bundle()
			if err := handshake(t, setup, bundle, test.host); err != nil {
				t.Errorf("connecting to %s: %v", test.host, err)
			}
			if err := handshake(t, setup, bundle, test.another); err == nil {
				t.Errorf("want the certificate refused for %s", test.another)
			}
			if err := handshake(t, setup, stranger.Certificates.Bundle(), test.host); err == nil {
				t.Error("want the certificate refused by the authority of another process")
			}
		})
	}
}

func TestACertificateFromADirectoryIsPresentedFromTheStart(t *testing.T) {
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("quota.example", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	given := map[string][]byte{CertKey: certPEM, KeyKey: keyPEM, AuthorityKey: certPEM}
	path := directory(t, given)
	setup, err := New(clock.RealClock{}, Options{URL: "https://quota.example", CertDir: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := handshake(t, setup, given[AuthorityKey], "quota.example"); err != nil {
		t.Error(err)
	}

	loaded, again, err := setup.Directory.Load(t.Context())
	if err != nil || again <= 0 || !loaded.NotAfter().Equal(setup.Certificates.NotAfter()) {
		t.Errorf("got %v again after %s, error %v, want what is presented", loaded, again, err)
	}
	if err := os.WriteFile(filepath.Join(path, CertKey), []byte("half of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := setup.Directory.Load(t.Context()); err == nil {
		t.Error("want an error for a certificate that is being written")
	}
}
