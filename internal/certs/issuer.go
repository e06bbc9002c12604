// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"crypto"
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
	// certificateType is what PEM calls a certificate.
	certificateType = "CERTIFICATE"

	authorityName   = "shared-quota-webhook-ca"
	organization    = "shared-quota"
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 365 * 24 * time.Hour
	// Lookahead is how long before its end a certificate is renewed: long
	// enough for somebody to notice that it can't be.
	Lookahead = 90 * 24 * time.Hour
	// serialBits is how many bits a serial number has at most: RFC 5280 allows 20 bytes.
	serialBits = 128
	// backdate lets clocks differ between who issues and who verifies.
	backdate = time.Hour
)

// Issuer renews the content of one Secret.
type Issuer struct {
	// names are those of the host that the API server calls; the first is the one that it calls.
	names []string
}

// NewIssuer makes an issuer of certificates for the host that the API server
// calls, and for its other names.
func NewIssuer(host string, others ...string) *Issuer {
	return &Issuer{names: append([]string{host}, others...)}
}

// pair is a certificate and its key.
type pair struct {
	certificate     *x509.Certificate
	key             crypto.Signer
	certPEM, keyPEM []byte
}

// Renewed is what the Secret must hold.
type Renewed struct {
	Data map[string][]byte
	// Why is empty where the Secret holds it already.
	Why string
	// Due is when to renew next.
	Due time.Time
}

// Renew replaces what is missing or garbage, is for another host, or ends
// within Lookahead, and a certificate whose key takes long to sign with. Keys that
// it doesn't know stay.
func (i *Issuer) Renew(data map[string][]byte, now time.Time) (Renewed, error) {
	renewed := Renewed{Data: maps.Clone(data)}
	if renewed.Data == nil {
		renewed.Data = map[string][]byte{}
	}
	authority, ok := i.authority(data, now)
	if !ok {
		made, err := makeAuthority(now)
		if err != nil {
			return Renewed{}, fmt.Errorf("making a certificate authority: %w", err)
		}
		authority = made
		renewed.Data[AuthorityPrivateKey] = authority.keyPEM
		renewed.Why = "there is no certificate authority that can sign for long enough"
	}
	if !bytes.Equal(renewed.Data[AuthorityKey], authority.certPEM) {
		renewed.Data[AuthorityKey] = authority.certPEM
		renewed.because("something else stands with the certificate authority")
	}
	host := i.names[0]
	if held, valid := validPair(renewed.Data, CertKey, KeyKey, host, now); !valid || !isFast(held.key) {
		made, err := i.certify(authority, now)
		if err != nil {
			return Renewed{}, fmt.Errorf("making a certificate for %s: %w", host, err)
		}
		renewed.Data[CertKey], renewed.Data[KeyKey] = made.certPEM, made.keyPEM
		if valid {
			renewed.because("the certificate for " + host + " has no ECDSA key")
		} else {
			renewed.because("there is no certificate for " + host + " that is valid for long enough")
		}
	}
	due, err := due(renewed.Data)
	renewed.Due = due
	return renewed, err
}

// because keeps the first reason, from which the others follow.
func (r *Renewed) because(why string) {
	if r.Why == "" {
		r.Why = why
	}
}

// authority returns the authority that the Secret holds, if it can sign what is
// valid for long enough. Its key may be of any kind, because it signs once a year: a
// replica of an older release replaces an authority that has no RSA key.
func (i *Issuer) authority(data map[string][]byte, now time.Time) (*pair, bool) {
	held, valid := validPair(data, AuthorityKey, AuthorityPrivateKey, authorityName, now)
	return held, valid && held.certificate.IsCA
}

// validPair returns the pair under two keys, if the authority vouches for its name from now
// until Lookahead is over. A certificate may begin after now.
func validPair(data map[string][]byte, cert, key, name string, now time.Time) (*pair, bool) {
	held, err := tls.X509KeyPair(data[cert], data[key])
	if err != nil { // that it can't be read is as good a reason to replace it
		return nil, false
	}
	signer, ok := held.PrivateKey.(crypto.Signer)
	authorities := x509.NewCertPool()
	if !ok || !authorities.AppendCertsFromPEM(data[AuthorityKey]) {
		return nil, false
	}
	for _, at := range []time.Time{now, now.Add(Lookahead)} {
		if _, err := held.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: authorities, CurrentTime: at}); err != nil {
			return nil, false
		}
	}
	return &pair{
		certificate: held.Leaf, key: signer,
		certPEM: encode(held.Leaf.Raw), keyPEM: data[key],
	}, true
}

// isFast reports whether a key signs quickly. The API server keeps 25 connections for calls
// of a Service; each call beyond those makes a connection, for which the key signs.
func isFast(key crypto.Signer) bool {
	public, ok := key.Public().(*ecdsa.PublicKey)
	return ok && public.Curve == elliptic.P256()
}

func makeAuthority(now time.Time) (*pair, error) {
	return sign(&x509.Certificate{
		Subject:  pkix.Name{CommonName: authorityName, Organization: []string{organization}},
		DNSNames: []string{authorityName}, NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}, nil, now)
}

// certify makes a certificate for the host.
func (i *Issuer) certify(authority *pair, now time.Time) (*pair, error) {
	return sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: i.names[0]}, DNSNames: slices.Clone(i.names), NotAfter: now.Add(certificateLife),
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, authority, now)
}

// sign makes a certificate of a new key. Without an authority it vouches for itself.
func sign(template *x509.Certificate, authority *pair, now time.Time) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	if authority == nil {
		authority = &pair{certificate: template, key: key}
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits)); err != nil {
		return nil, fmt.Errorf("choosing a serial number: %w", err)
	}
	template.NotBefore = now.Add(-backdate)
	raw, err := x509.CreateCertificate(rand.Reader, template, authority.certificate, key.Public(), authority.key)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	made := &pair{key: key, certPEM: encode(raw)}
	if made.certificate, err = x509.ParseCertificate(raw); err != nil {
		return nil, fmt.Errorf("reading what was signed: %w", err)
	}
	if made.keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		return nil, fmt.Errorf("encoding the key: %w", err)
	}
	return made, nil
}

func encode(certificate []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certificateType, Bytes: certificate})
}

// due is when the first of both certificates comes within Lookahead of its end.
func due(data map[string][]byte) (time.Time, error) {
	var first time.Time
	for _, key := range []string{AuthorityKey, CertKey} {
		block, _ := pem.Decode(data[key])
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return time.Time{}, fmt.Errorf("reading %s: %w", key, err)
		}
		if end := certificate.NotAfter; first.IsZero() || end.Before(first) {
			first = end
		}
	}
	return first.Add(-Lookahead), nil
}
