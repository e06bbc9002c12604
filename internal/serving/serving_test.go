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

package serving

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedquota/shared-quota-operator/internal/reach"
)

// certificates is a directory as an installation provides it.
func certificates(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	if err := os.WriteFile(filepath.Join(directory, "ca.crt"), []byte("authority"), 0o600); err != nil {
		t.Fatal(err)
	}
	return directory
}

func TestWhereWebhooksAreServedWithAnInstallationsCertificate(t *testing.T) {
	directory := certificates(t)
	for name, test := range map[string]struct {
		options Options
		want    reach.Endpoint
	}{
		"behind a Service": {
			options: Options{Service: "operator/webhook", CertDir: directory},
			want:    reach.Endpoint{Namespace: "operator", Name: "webhook", CABundle: []byte("authority")},
		},
		"at a URL": {
			options: Options{URL: "https://quota.example.com/", CertDir: directory},
			want:    reach.Endpoint{URL: "https://quota.example.com", CABundle: []byte("authority")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, endpoint, err := Server(test.options)
			if err != nil || server == nil {
				t.Fatalf("got server %v, error %v", server, err)
			}
			if diff := cmp.Diff(test.want, endpoint); diff != "" {
				t.Errorf("endpoint (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestACertificateOfItsOwn(t *testing.T) {
	for name, test := range map[string]struct{ url, endpoint, host string }{
		"for an address":           {url: "https://127.0.0.1:9443", endpoint: "https://127.0.0.1:9443", host: "127.0.0.1"},
		"for a name":               {url: "https://localhost:9443/", endpoint: "https://localhost:9443", host: "localhost"},
		"for an address of today":  {url: "https://[::1]:9443", endpoint: "https://[::1]:9443", host: "::1"},
		"for a name without ports": {url: "https://quota.example.com", endpoint: "https://quota.example.com", host: "quota.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			_, endpoint, err := Server(Options{URL: test.url, Port: 9443})
			if err != nil {
				t.Fatal(err)
			}
			if endpoint.URL != test.endpoint {
				t.Errorf("URL: got %s, want %s", endpoint.URL, test.endpoint)
			}
			requireCertificateFor(t, endpoint.CABundle, test.host)
		})
	}
}

// requireCertificateFor proves that what the API server is told to trust
// vouches for the host that it calls.
func requireCertificateFor(t *testing.T, bundle []byte, host string) {
	t.Helper()
	block, _ := pem.Decode(bundle)
	if block == nil {
		t.Fatalf("got no certificate in %q", bundle)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(bundle) {
		t.Fatal("the bundle holds nothing to trust")
	}
	if _, err := certificate.Verify(x509.VerifyOptions{DNSName: host, Roots: trusted}); err != nil {
		t.Errorf("verifying the certificate for %s: %v", host, err)
	}
}

func TestWhatCannotBeServed(t *testing.T) {
	directory := certificates(t)
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"nothing is said":               {want: errWhere.Error()},
		"both a URL and a Service":      {options: Options{URL: "https://a", Service: "b/c", CertDir: directory}, want: errWhere.Error()},
		"a Service without certificate": {options: Options{Service: "operator/webhook"}, want: errWhere.Error()},
		"a certificate for nobody":      {options: Options{CertDir: directory}, want: errWhere.Error()},
		"a Service without namespace":   {options: Options{Service: "webhook", CertDir: directory}, want: `--webhook-service "webhook": want NAMESPACE/NAME`},
		"a Service of half a name":      {options: Options{Service: "operator/", CertDir: directory}, want: `--webhook-service "operator/": want NAMESPACE/NAME`},
		"a URL that isn't safe":         {options: Options{URL: "http://127.0.0.1:9443"}, want: `--webhook-url "http://127.0.0.1:9443": want https://HOST:PORT`},
		"a URL without a host":          {options: Options{URL: "https://:9443"}, want: `--webhook-url "https://:9443": want https://HOST:PORT`},
		"a URL that isn't one":          {options: Options{URL: "https://%zz"}, want: `--webhook-url "https://%zz": want https://HOST:PORT`},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Server(test.options)
			if err == nil || err.Error() != test.want {
				t.Errorf("error: got %v, want %s", err, test.want)
			}
		})
	}
}

func TestACertificateDirectoryWithoutAuthority(t *testing.T) {
	if _, _, err := Server(Options{Service: "operator/webhook", CertDir: t.TempDir()}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error: got %v, want that there is no ca.crt", err)
	}
}
