// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Keys of the Secret's data, as cert-manager names them.
const (
	CertKey      = corev1.TLSCertKey
	KeyKey       = corev1.TLSPrivateKeyKey
	AuthorityKey = corev1.ServiceAccountRootCAKey
	// AuthorityPrivateKey signs the certificates to come.
	AuthorityPrivateKey = "ca.key"
)

const (
	authorityName   = "shared-quota-webhook-ca"
	organization    = "shared-quota"
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 365 * 24 * time.Hour
	// Lookahead is how long before its end a certificate is renewed: long enough
	// for an administrator to notice that it can't be.
	Lookahead = 90 * 24 * time.Hour
	// serialBits is how many bits a serial number has at most: RFC 5280 allows 20 bytes.
	serialBits = 128
	// backdate lets the clocks of issuer and verifier differ.
	backdate = time.Hour
)

// Issuer renews the content of one Secret.
type Issuer struct {
	// names are the names of the host that the API server calls; it calls the first.
	names []string
}

// NewIssuer makes an issuer of certificates for the host that the API server
// calls, and for its other names.
func NewIssuer(host string, others ...string) *Issuer {
	return &Issuer{names: append([]string{host}, others...)}
}

// Renewed is the new content of the Secret.
type Renewed struct {
	Data map[string][]byte
	// Why is empty if the Secret holds it already.
	Why string
	// Due is when to renew next.
	Due time.Time
}

// Renew replaces each key that is missing or garbage, is for another host, or
// ends within Lookahead. Keys that it doesn't know stay.
func (i *Issuer) Renew(data map[string][]byte, now time.Time) (Renewed, error) {
	renewed := Renewed{Data: map[string][]byte{}}
	maps.Copy(renewed.Data, data)
	authority := held(renewed.Data, AuthorityKey, AuthorityPrivateKey, authorityName, now)
	if authority == nil || !authority.Leaf.IsCA || len(authority.Certificate) > 1 {
		var err error
		if authority, err = renewed.issue(AuthorityKey, AuthorityPrivateKey, authorityTemplate(now), nil, now); err != nil {
			return Renewed{}, fmt.Errorf("making a certificate authority: %w", err)
		}
		renewed.Why = "there is no certificate authority that can sign for long enough"
	}
	host := i.names[0]
	certificate := held(renewed.Data, CertKey, KeyKey, host, now)
	if certificate == nil {
		var err error
		if certificate, err = renewed.issue(CertKey, KeyKey, i.template(now), authority, now); err != nil {
			return Renewed{}, fmt.Errorf("making a certificate for %s: %w", host, err)
		}
		// The first reason stays: the other follows from it.
		renewed.Why = cmp.Or(renewed.Why, "there is no certificate for "+host+" that is valid for long enough")
	}
	end := authority.Leaf.NotAfter
	if certificate.Leaf.NotAfter.Before(end) {
		end = certificate.Leaf.NotAfter
	}
	renewed.Due = end.Add(-Lookahead)
	return renewed, nil
}

// held returns the certificate under two keys, if the authority vouches for its name from now
// until Lookahead is over, and nil otherwise. A certificate may begin after now.
func held(data map[string][]byte, cert, key, name string, now time.Time) *tls.Certificate {
	found, err := tls.X509KeyPair(data[cert], data[key])
	authorities := x509.NewCertPool()
	// That it can't be read is as good a reason to replace it.
	if err != nil || !authorities.AppendCertsFromPEM(data[AuthorityKey]) {
		return nil
	}
	for _, at := range []time.Time{now, now.Add(Lookahead)} {
		if _, err := found.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: authorities, CurrentTime: at}); err != nil {
			return nil
		}
	}
	return &found
}

func authorityTemplate(now time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject:  pkix.Name{CommonName: authorityName, Organization: []string{organization}},
		DNSNames: []string{authorityName}, NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
}

// template is of the host's certificate.
func (i *Issuer) template(now time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: i.names[0]}, DNSNames: slices.Clone(i.names), NotAfter: now.Add(certificateLife),
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
}

// issue puts a certificate and its new key under two keys. Without an authority it vouches for itself.
func (r *Renewed) issue(
	cert, key string, template *x509.Certificate, authority *tls.Certificate, now time.Time,
) (*tls.Certificate, error) {
	// API servers keep 25 connections for calls of a Service; each call beyond those makes one, for which the key
	// signs. A key of this kind signs quickly.
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	if authority == nil {
		authority = &tls.Certificate{Leaf: template, PrivateKey: private}
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits)); err != nil {
		return nil, fmt.Errorf("choosing a serial number: %w", err)
	}
	template.NotBefore = now.Add(-backdate)
	raw, err := x509.CreateCertificate(rand.Reader, template, authority.Leaf, private.Public(), authority.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	r.Data[cert] = pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: raw})
	if r.Data[key], err = keyutil.MarshalPrivateKeyToPEM(private); err != nil {
		return nil, fmt.Errorf("encoding the key: %w", err)
	}
	made, err := tls.X509KeyPair(r.Data[cert], r.Data[key])
	if err != nil {
		return nil, fmt.Errorf("reading what was signed: %w", err)
	}
	return &made, nil
}
