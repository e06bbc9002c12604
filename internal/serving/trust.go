// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"crypto/x509"
	"slices"
	"time"

	"k8s.io/client-go/util/cert"
)

// overlap is how long an authority stays trusted after the webhook configuration
// trusts its successor. Replicas present another certificate within seconds; a
// replica that reads a mounted Secret does so minutes later.
const overlap = time.Hour

// trust has the authorities that the API server must trust. Nothing of it is
// changed once made.
type trust struct {
	// given are the authorities of the newest certificate.
	given []*x509.Certificate
	// earlier are those before them: a replica may still present a certificate
	// that one of them vouches for.
	earlier []*x509.Certificate
	// until is when the earlier ones go.
	until time.Time
}

// after returns the trust that follows once these authorities are given and the webhook configuration trusts those
// seen. Authorities that the configuration trusts stay when another one comes, because another replica may have added
// them. At other times an edit of the configuration is not taken over.
func (t trust) after(given, seen []*x509.Certificate, now time.Time) trust {
	next := trust{given: given, earlier: t.earlier, until: t.until}
	changed := !slices.EqualFunc(t.given, given, (*x509.Certificate).Equal)
	if changed {
		next.earlier = with(with(t.earlier, t.given...), seen...)
	}
	missing := slices.ContainsFunc(given, func(one *x509.Certificate) bool { return !contains(seen, one) })
	if changed || missing {
		next.until = now.Add(overlap)
	}
	next.earlier = slices.DeleteFunc(slices.Clone(next.earlier), func(one *x509.Certificate) bool {
		return contains(given, one) || now.After(one.NotAfter) || !now.Before(next.until)
	})
	return next
}

func (t trust) bundle() []byte {
	bundle, _ := cert.EncodeCertificates(with(t.given, t.earlier...)...) // in memory, which never fails
	return bundle
}

// again is after how long the trust changes by itself; 0 for never.
func (t trust) again(now time.Time) time.Duration {
	if len(t.earlier) == 0 {
		return 0
	}
	return max(t.until.Sub(now), time.Second)
}
