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

package issuing

import (
	"bytes"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	corev1 "k8s.io/api/core/v1"
)

// Keys of the Secret's data, as cert-controller and cert-manager name them.
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

	authorityName = "shared-quota-webhook-ca"
	organization  = "shared-quota"
	// authorityLife and certificateLife are cert-controller's defaults.
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 365 * 24 * time.Hour
	// Lookahead is how long before its end a certificate is renewed: long
	// enough for somebody to notice that it can't be.
	Lookahead = 90 * 24 * time.Hour
	// backdate lets clocks differ between who issues and who verifies.
	backdate = time.Hour
)

// Issuer renews the content of one Secret.
type Issuer struct {
	rotator *rotator.CertRotator
}

// NewIssuer makes an issuer of certificates for the host that the API server
// calls, and for its other names.
func NewIssuer(host string, others ...string) *Issuer {
	return &Issuer{rotator: &rotator.CertRotator{
		CAName: authorityName, CAOrganization: organization,
		DNSName: host, ExtraDNSNames: others,
		ExtKeyUsages: &[]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}}
}

// Renewed is what the Secret is to hold.
type Renewed struct {
	Data map[string][]byte
	// Why is empty where the Secret holds it already.
	Why string
	// Due is when to renew next.
	Due time.Time
}

// Renew replaces what is missing or garbage, is for another host, or ends
// within Lookahead. Keys that it doesn't know stay.
func (i *Issuer) Renew(data map[string][]byte, now time.Time) (Renewed, error) {
	renewed := Renewed{Data: maps.Clone(data)}
	if renewed.Data == nil {
		renewed.Data = map[string][]byte{}
	}
	authority, ok := i.authority(data, now)
	if !ok {
		made, err := i.rotator.CreateCACert(now.Add(-backdate), now.Add(authorityLife))
		if err != nil {
			return Renewed{}, fmt.Errorf("making a certificate authority: %w", err)
		}
		authority = made
		renewed.Data[AuthorityPrivateKey] = authority.KeyPEM
		renewed.Why = "there is no certificate authority that can sign for long enough"
	}
	if !bytes.Equal(renewed.Data[AuthorityKey], authority.CertPEM) {
		renewed.Data[AuthorityKey] = authority.CertPEM
		renewed.because("something else stands with the certificate authority")
	}
	if !i.valid(renewed.Data, CertKey, KeyKey, i.rotator.DNSName, i.rotator.ExtKeyUsages, now) {
		cert, key, err := i.rotator.CreateCertPEM(authority, now.Add(-backdate), now.Add(certificateLife))
		if err != nil {
			return Renewed{}, fmt.Errorf("making a certificate for %s: %w", i.rotator.DNSName, err)
		}
		renewed.Data[CertKey], renewed.Data[KeyKey] = cert, key
		renewed.because("there is no certificate for " + i.rotator.DNSName + " that is valid for long enough")
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
// valid for long enough.
func (i *Issuer) authority(data map[string][]byte, now time.Time) (*rotator.KeyPairArtifacts, bool) {
	if !i.valid(data, AuthorityKey, AuthorityPrivateKey, authorityName, nil, now) {
		return nil, false
	}
	pair, err := tls.X509KeyPair(data[AuthorityKey], data[AuthorityPrivateKey])
	if err != nil || !pair.Leaf.IsCA {
		return nil, false
	}
	key, ok := pair.PrivateKey.(*rsa.PrivateKey)
	if !ok {
		return nil, false
	}
	return &rotator.KeyPairArtifacts{
		Cert: pair.Leaf, CertPEM: pem.EncodeToMemory(&pem.Block{Type: certificateType, Bytes: pair.Leaf.Raw}),
		Key: key, KeyPEM: data[AuthorityPrivateKey],
	}, true
}

// valid asks about both ends: cert-controller looks at one time only, and a
// certificate may begin after now.
func (*Issuer) valid(data map[string][]byte, cert, key, name string, usages *[]x509.ExtKeyUsage, now time.Time) bool {
	for _, at := range []time.Time{now, now.Add(Lookahead)} {
		valid, err := rotator.ValidCert(data[AuthorityKey], data[cert], data[key], name, usages, at)
		if err != nil || !valid { // that it can't be read is as good a reason to replace it
			return false
		}
	}
	return true
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
