// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"
)

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
	authorities, err := ParseBundle(authorityPEM)
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

// chain is what a caller is shown.
func (m *Material) chain() []*x509.Certificate {
	chain := []*x509.Certificate{m.pair.Leaf}
	for _, raw := range m.pair.Certificate[1:] {
		// What can't be read vouches for nothing.
		if certificate, err := x509.ParseCertificate(raw); err == nil {
			chain = append(chain, certificate)
		}
	}
	return chain
}

var errNoAuthority = errors.New("there is no certificate in it")

// ParseBundle reads all certificates in a text of PEM, each once.
func ParseBundle(text []byte) ([]*x509.Certificate, error) {
	var certificates []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != certificateType {
			continue // the API server passes it over too
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("reading a certificate: %w", err)
		}
		certificates = with(certificates, certificate)
	}
	if len(certificates) == 0 {
		return nil, errNoAuthority
	}
	return certificates, nil
}

func formatBundle(certificates []*x509.Certificate) []byte {
	blocks := make([][]byte, 0, len(certificates))
	for _, certificate := range certificates {
		blocks = append(blocks, pem.EncodeToMemory(&pem.Block{Type: certificateType, Bytes: certificate.Raw}))
	}
	return bytes.Join(blocks, nil)
}

func contains(certificates []*x509.Certificate, one *x509.Certificate) bool {
	return slices.ContainsFunc(certificates, one.Equal)
}

// with adds what isn't there yet.
func with(certificates []*x509.Certificate, more ...*x509.Certificate) []*x509.Certificate {
	all := slices.Clone(certificates)
	for _, one := range more {
		if !contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}
