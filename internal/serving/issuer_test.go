// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	day  = 24 * time.Hour
	host = "webhook.operator.svc"
)

var now = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func mustRenew(t *testing.T, issuer *Issuer, data map[string][]byte, at time.Time) Renewed {
	t.Helper()
	renewed, err := issuer.Renew(data, at)
	if err != nil {
		t.Fatal(err)
	}
	return renewed
}

// without returns the content with one key's value replaced.
func without(data map[string][]byte, key, value string) map[string][]byte {
	changed := maps.Clone(data)
	changed[key] = []byte(value)
	return changed
}

func TestRenewals(t *testing.T) {
	const (
		authority   = "there is no certificate authority that can sign for long enough"
		certificate = "there is no certificate for webhook.operator.svc that is valid for long enough"
	)
	issuer := NewIssuer(host, "webhook.operator")
	issuedAt := func(at time.Time) map[string][]byte { return mustRenew(t, issuer, nil, at).Data }
	good := issuedAt(now)
	another := issuedAt(now)
	elsewhere := mustRenew(t, NewIssuer("elsewhere"), nil, now).Data
	// A certificate that has the authority's name, and vouches for itself alone.
	noAuthority := mustRenew(t, NewIssuer(authorityName), nil, now).Data

	for name, test := range map[string]struct {
		data map[string][]byte
		want string
		// kept are the keys whose values must stay.
		kept []string
	}{
		"what is good stays":                   {data: good, kept: []string{AuthorityKey, AuthorityPrivateKey, CertKey, KeyKey}},
		"nothing":                              {want: authority},
		"empty values":                         {data: map[string][]byte{CertKey: nil, KeyKey: nil}, want: authority},
		"an authority that is garbage":         {data: without(good, AuthorityKey, "garbage"), want: authority},
		"an authority without its key":         {data: without(good, AuthorityPrivateKey, ""), want: authority},
		"an authority with another's key":      {data: without(good, AuthorityPrivateKey, string(another[AuthorityPrivateKey])), want: authority},
		"an authority of someone else's":       {data: without(good, AuthorityKey, string(another[AuthorityKey])), want: authority},
		"an authority that can't sign":         {data: map[string][]byte{AuthorityKey: noAuthority[CertKey], AuthorityPrivateKey: noAuthority[KeyKey]}, want: authority},
		"an authority that comes near its end": {data: issuedAt(now.Add(Lookahead - authorityLife - time.Second)), want: authority},
		"all that is valid only tomorrow":      {data: issuedAt(now.Add(day)), want: authority},
		"something beside the authority": {
			data: without(good, AuthorityKey, string(good[AuthorityKey])+string(another[AuthorityKey])), want: authority,
		},
		"a certificate that is garbage": {
			data: without(good, CertKey, "garbage"), want: certificate, kept: []string{AuthorityKey, AuthorityPrivateKey},
		},
		"a certificate with another's key": {
			data: without(good, KeyKey, string(another[KeyKey])), want: certificate, kept: []string{AuthorityKey, AuthorityPrivateKey},
		},
		"a certificate for another host": {data: elsewhere, want: certificate, kept: []string{AuthorityKey, AuthorityPrivateKey}},
		"a certificate that comes near its end": {
			data: issuedAt(now.Add(Lookahead - certificateLife - time.Second)), want: certificate,
			kept: []string{AuthorityKey, AuthorityPrivateKey},
		},
		"a certificate that has ended": {
			data: issuedAt(now.Add(-certificateLife - day)), want: certificate, kept: []string{AuthorityKey, AuthorityPrivateKey},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := maps.Clone(test.data)
			renewed := mustRenew(t, issuer, test.data, now)
			if renewed.Why != test.want {
				t.Errorf("why: got %q, want %q", renewed.Why, test.want)
			}
			if diff := cmp.Diff(before, test.data); diff != "" {
				t.Errorf("the input was changed (-want,+got):\n%s", diff)
			}
			requireKept(t, test.data, renewed.Data, test.kept)
			requireValid(t, renewed.Data)
			if renewed.Due.Sub(now) <= 0 || renewed.Due.Sub(now) > certificateLife-Lookahead {
				t.Errorf("due %s after it was renewed", renewed.Due.Sub(now))
			}
			if again := mustRenew(t, issuer, renewed.Data, now); again.Why != "" {
				t.Errorf("what was renewed is renewed again: %s", again.Why)
			}
		})
	}
}

func requireKept(t *testing.T, before, after map[string][]byte, kept []string) {
	t.Helper()
	for _, key := range kept {
		if diff := cmp.Diff(before[key], after[key]); diff != "" {
			t.Errorf("%s was replaced (-want,+got):\n%s", key, diff)
		}
	}
}

// requireValid proves that the authority vouches for both names, for as long as
// is wanted, and can sign the next certificate.
func requireValid(t *testing.T, data map[string][]byte) {
	t.Helper()
	for _, name := range []string{host, "webhook.operator"} {
		for _, at := range []time.Time{now, now.Add(Lookahead)} {
			authorities := x509.NewCertPool()
			held, err := tls.X509KeyPair(data[CertKey], data[KeyKey])
			if err != nil || !authorities.AppendCertsFromPEM(data[AuthorityKey]) {
				t.Fatal("what it has can't be read", err)
			}
			if _, ok := held.PrivateKey.(*ecdsa.PrivateKey); !ok {
				t.Errorf("got a key of type %T, which signs slowly", held.PrivateKey)
			}
			if _, err := held.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: authorities, CurrentTime: at}); err != nil {
				t.Errorf("for %s at %s: %v", name, at, err)
			}
		}
	}
	if _, err := tls.X509KeyPair(data[AuthorityKey], data[AuthorityPrivateKey]); err != nil {
		t.Error(err)
	}
}

func TestItIsRenewedWhenItIsDueAndNotBefore(t *testing.T) {
	issuer := NewIssuer(host)
	renewed := mustRenew(t, issuer, nil, now)
	if want := now.Add(certificateLife - Lookahead); !renewed.Due.Equal(want) {
		t.Errorf("due at %s, want %s", renewed.Due, want)
	}
	if early := mustRenew(t, issuer, renewed.Data, renewed.Due); early.Why != "" {
		t.Errorf("renewed too early: %s", early.Why)
	}
	if late := mustRenew(t, issuer, renewed.Data, renewed.Due.Add(time.Second)); late.Why == "" {
		t.Error("want it renewed a second later")
	}
}

func TestOtherKeysStay(t *testing.T) {
	data := map[string][]byte{"note": []byte("ours")}
	if got := mustRenew(t, NewIssuer(host), data, now).Data["note"]; string(got) != "ours" {
		t.Errorf("note: got %q, want it kept", got)
	}
}
