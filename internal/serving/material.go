// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"time"

	"k8s.io/client-go/util/cert"
)

// directoryEvery is how often files are read again. A kubelet brings a new Secret
// within a minute.
const directoryEvery = 10 * time.Second

// Material is a certificate to present, and the authorities that vouch for it.
type Material struct {
	pair        tls.Certificate
	authorities []*x509.Certificate
}

// NewMaterial reads a certificate with its key, and the authorities, from PEM.
func NewMaterial(certPEM, keyPEM, authorityPEM []byte) (*Material, error) {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("reading the webhook's certificate: %w", err)
	}
	authorities, err := parseBundle(authorityPEM)
	if err != nil {
		return nil, fmt.Errorf("reading the webhook's certificate authority: %w", err)
	}
	return &Material{pair: pair, authorities: authorities}, nil
}

// NotAfter is the end of the certificate's life.
func (m *Material) NotAfter() time.Time { return m.pair.Leaf.NotAfter }

func (m *Material) equal(other *Material) bool {
	return m != nil && other != nil && m.pair.Leaf.Equal(other.pair.Leaf) &&
		slices.EqualFunc(m.authorities, other.authorities, (*x509.Certificate).Equal)
}

// chain returns the certificates that a caller is shown.
func (m *Material) chain() []*x509.Certificate {
	chain := []*x509.Certificate{m.pair.Leaf}
	for _, raw := range m.pair.Certificate[1:] {
		// A certificate that can't be read vouches for nothing.
		if certificate, err := x509.ParseCertificate(raw); err == nil {
			chain = append(chain, certificate)
		}
	}
	return chain
}

// parseBundle reads all certificates in a text of PEM, each once.
func parseBundle(text []byte) ([]*x509.Certificate, error) {
	certificates, err := cert.ParseCertsPEM(text)
	return with(nil, certificates...), err
}

func contains(certificates []*x509.Certificate, one *x509.Certificate) bool {
	return slices.ContainsFunc(certificates, one.Equal)
}

// with adds the certificates that are missing.
func with(certificates []*x509.Certificate, more ...*x509.Certificate) []*x509.Certificate {
	all := slices.Clone(certificates)
	for _, one := range more {
		if !contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

// Directory holds a certificate that the installation provides: tls.crt,
// tls.key and ca.crt, each of which may change.
type Directory string

// Load reads the files, and says after how long to read them again.
func (d Directory) Load(context.Context) (*Material, time.Duration, error) {
	material, err := d.read()
	return material, directoryEvery, err
}

func (d Directory) read() (*Material, error) {
	var content [3][]byte
	for i, name := range []string{CertKey, KeyKey, AuthorityKey} {
		var err error
		if content[i], err = fs.ReadFile(os.DirFS(string(d)), name); err != nil {
			return nil, fmt.Errorf("reading the webhook's certificate in %s: %w", string(d), err)
		}
	}
	return NewMaterial(content[0], content[1], content[2])
}

// SelfSign makes a certificate for one host, which lives as long as the process.
func (c *Certificates) SelfSign(host string) error {
	var addresses []net.IP
	if address := net.ParseIP(host); address != nil {
		addresses = append(addresses, address)
	}
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey(host, addresses, nil)
	if err != nil {
		return fmt.Errorf("making a certificate for %s: %w", host, err)
	}
	material, err := NewMaterial(certPEM, keyPEM, certPEM)
	if err != nil {
		return err
	}
	c.Update(material, nil)
	return nil
}
