// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"crypto/tls"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// settle is for how long the webhook configuration has to trust a certificate
// before it is presented: each API server has to see it first.
const settle = 5 * time.Second

var errNoCertificate = errors.New("there is no certificate for the webhooks yet; the log tells what keeps it from being made")

// Certificates has the certificate that this replica presents, and the
// authorities that callers must trust. The zero value is not ready for use; its
// methods may be called concurrently.
type Certificates struct {
	clock clock.PassiveClock
	// presented is nil until there is one.
	presented atomic.Pointer[Material]

	// mu guards the fields below.
	mu     sync.Mutex
	newest *Material
	trust  trust
	bundle []byte
	// trustedSince is when the configuration was first seen to trust the newest
	// while another is presented; zero while it doesn't.
	trustedSince time.Time
	changed      []func()
}

// NewCertificates makes Certificates without any.
func NewCertificates(clock clock.PassiveClock) *Certificates {
	return &Certificates{clock: clock}
}

// Bundle returns the authorities that the API server must trust to call the
// webhooks: CA certificates in PEM; nil until there is one.
func (c *Certificates) Bundle() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bundle
}

// OnChange has changed called whenever Bundle returns something else.
func (c *Certificates) OnChange(changed func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = append(c.changed, changed)
}

// Present is the GetCertificate of a TLS server.
func (c *Certificates) Present(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	presented := c.presented.Load()
	if presented == nil {
		return nil, errNoCertificate
	}
	return &presented.pair, nil
}

// NotAfter is the end of the presented certificate; zero while none is presented.
func (c *Certificates) NotAfter() time.Time {
	presented := c.presented.Load()
	if presented == nil {
		return time.Time{}
	}
	return presented.NotAfter()
}

// Progress is the result of an Update.
type Progress struct {
	// Exchanged tells that another certificate is presented than before.
	Exchanged bool
	// Again is after how long to update again, if nothing else asks for it; 0
	// for never.
	Again time.Duration
}

// Update sets the newest certificate, and how the API server calls the webhooks
// now.
func (c *Certificates) Update(newest *Material, calls []Call) Progress {
	now := c.clock.Now()
	progress, changed := c.update(newest, calls, now)
	for _, tell := range changed {
		tell()
	}
	return progress
}

// update also returns the functions that must be called, once the lock is free,
// because the bundle has changed.
func (c *Certificates) update(newest *Material, calls []Call, now time.Time) (progress Progress, tell []func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !newest.equal(c.newest) {
		c.newest, c.trustedSince = newest, time.Time{}
	}
	c.trust = c.trust.after(newest.authorities, trustedBy(calls), now)
	progress = c.lockedExchange(calls, now)
	if again := c.trust.again(now); again > 0 && (progress.Again == 0 || again < progress.Again) {
		progress.Again = again
	}
	bundle := c.trust.bundle()
	if bytes.Equal(bundle, c.bundle) {
		return progress, nil
	}
	c.bundle = bundle
	return progress, c.changed
}

// lockedExchange presents the newest certificate once that is better than to go
// on with the present one.
func (c *Certificates) lockedExchange(calls []Call, now time.Time) Progress {
	presented := c.presented.Load()
	switch {
	case presented != nil && presented.pair.Leaf.Equal(c.newest.pair.Leaf):
		return Progress{}
	case presented == nil:
	case !trusted(calls, c.newest, now):
		c.trustedSince = time.Time{}
		return Progress{} // a change of the configuration asks again
	case trusted(calls, presented, now):
		if c.trustedSince.IsZero() {
			c.trustedSince = now
		}
		if wait := c.trustedSince.Add(settle).Sub(now); wait > 0 {
			return Progress{Again: wait}
		}
	}
	c.presented.Store(c.newest)
	return Progress{Exchanged: true}
}

// PresentFrom presents the certificate that the installation provides from the
// start, and fails at once if it can't be read.
func (c *Certificates) PresentFrom(directory Directory) error {
	material, err := directory.read()
	if err != nil {
		return err
	}
	c.presented.Store(material)
	return nil
}
