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
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

func optionsOf(t *testing.T, server webhook.Server) webhook.Options {
	t.Helper()
	served, ok := server.(*webhook.DefaultServer)
	if !ok {
		t.Fatalf("got a server of type %T, want *webhook.DefaultServer", server)
	}
	return served.Options
}

// handshake verifies the server as the API server would.
func handshake(t *testing.T, options webhook.Options, authority []byte, host string) error {
	t.Helper()
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	for _, change := range options.TLSOpts {
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
		// The client judges; what the server hears of it doesn't matter.
		_ = tls.Server(far, config).HandshakeContext(t.Context())
	}()
	client := tls.Client(near, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: host})
	err := client.HandshakeContext(t.Context())
	_ = near.Close()
	<-ended
	return err
}

func TestTheBundleVerifiesWhatIsServed(t *testing.T) {
	for name, test := range map[string]struct{ url, host, another string }{
		"for a name":            {url: "https://quota.example:9443", host: "quota.example", another: "other.example"},
		"for an address":        {url: "https://192.0.2.7:9443/", host: "192.0.2.7", another: "192.0.2.8"},
		"for a path on an IPv6": {url: "https://[2001:db8::7]:9443/base", host: "2001:db8::7", another: "2001:db8::8"},
	} {
		t.Run(name, func(t *testing.T) {
			server, endpoint, err := Server(Options{URL: test.url, Port: 9443})
			if err != nil {
				t.Fatal(err)
			}
			options := optionsOf(t, server)
			if options.Host != test.host || options.Port != 9443 {
				t.Errorf("listens on %s port %d, want %s port 9443", options.Host, options.Port, test.host)
			}
			if err := handshake(t, options, endpoint.CABundle, test.host); err != nil {
				t.Errorf("connecting to %s: %v", test.host, err)
			}
			if err := handshake(t, options, endpoint.CABundle, test.another); err == nil {
				t.Errorf("want the certificate refused for %s", test.another)
			}
		})
	}
}

func TestTheBundleDoesNotVerifyAnotherProcess(t *testing.T) {
	server, _, err := Server(Options{URL: "https://quota.example"})
	if err != nil {
		t.Fatal(err)
	}
	_, another, err := Server(Options{URL: "https://quota.example"})
	if err != nil {
		t.Fatal(err)
	}
	if err := handshake(t, optionsOf(t, server), another.CABundle, "quota.example"); err == nil {
		t.Error("want the certificate refused by the authority of another process")
	}
}

func TestCertificatesComeFromTheirDirectory(t *testing.T) {
	directory := certificates(t)
	server, _, err := Server(Options{URL: "https://quota.example:443", CertDir: directory, Port: 9443})
	if err != nil {
		t.Fatal(err)
	}
	// The URL is elsewhere: here the server listens on every address.
	if got := optionsOf(t, server); got.CertDir != directory || got.Port != 9443 || got.Host != "" || got.TLSOpts != nil {
		t.Errorf("got options %+v, want the directory, port 9443 and nothing else", got)
	}
	if err := server.Start(t.Context()); !os.IsNotExist(err) {
		t.Errorf("started without tls.crt: got error %v, want one that says so", err)
	}
}

// The API server takes no webhook with these. Better to say so at the start
// than to fail at every write of the configuration.
func TestWhatTheAPIServerCannotCall(t *testing.T) {
	directory := certificates(t)
	url, service := "want https://HOST:PORT", "want NAMESPACE/NAME"
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"a URL with a query":              {options: Options{URL: "https://host?a=b"}, want: url},
		"a URL with a fragment":           {options: Options{URL: "https://host#a"}, want: url},
		"a URL with a user":               {options: Options{URL: "https://me@host"}, want: url},
		"HTTP, though with a certificate": {options: Options{URL: "http://host", CertDir: directory}, want: url},
		"a certificate for no host":       {options: Options{URL: "https://:9443", CertDir: directory}, want: url},
		"a certificate for no URL":        {options: Options{URL: "host", CertDir: directory}, want: url},
		"a Service of three parts":        {options: Options{Service: "ops/quota/443", CertDir: directory}, want: service},
	} {
		t.Run(name, func(t *testing.T) {
			_, endpoint, err := Server(test.options)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got endpoint %q of %q/%q, error %v, want an error with %q",
					endpoint.URL, endpoint.Namespace, endpoint.Name, err, test.want)
			}
		})
	}
}
