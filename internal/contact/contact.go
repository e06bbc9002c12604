// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package contact

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

const (
	// lostAfter is how long the API server may be silent.
	lostAfter = 5 * time.Second
	// askAfter is after how much silence it is asked something.
	askAfter = time.Second
	// askTimeout is what it has for the answer.
	askTimeout = 2 * time.Second
)

// Contact is the contact with the API server. Its methods may be called
// concurrently. Time is measured by a clock that nobody sets: what counts is the
// difference of two readings in this process.
type Contact struct {
	clock   clock.Clock
	replica string
	start   time.Time
	// heard is when the API server last answered, since the start.
	heard atomic.Int64
	// spell is the present time of contact.
	spell atomic.Pointer[spell]
}

// spell is a time of contact.
type spell struct {
	// ctx ends with the contact.
	ctx context.Context //nolint:containedctx // what waits ends with it
	end context.CancelCauseFunc
}

// LostError says that the API server has not answered this replica for too long.
type LostError struct {
	Replica string
	Silence time.Duration
}

// Error implements error.
func (e *LostError) Error() string {
	return fmt.Sprintf("the replica %s has had no answer from the API server for %s, so it can't tell what quotas allow: "+
		"try again in a moment", e.Replica, e.Silence.Truncate(time.Second))
}

// Replica is the name of this replica.
func (c *Contact) Replica() string { return c.replica }

// New begins with contact.
func New(clock clock.Clock, replica string) *Contact {
	c := &Contact{clock: clock, replica: replica, start: clock.Now()}
	c.spell.Store(newSpell())
	return c
}

func newSpell() *spell {
	ctx, end := context.WithCancelCause(context.Background())
	return &spell{ctx: ctx, end: end}
}

// Silence returns for how long the API server has not answered.
func (c *Contact) Silence() time.Duration {
	return c.clock.Since(c.start) - time.Duration(c.heard.Load())
}

// Err returns a LostError if there is no contact.
func (c *Contact) Err() error {
	if silence := c.Silence(); silence >= lostAfter {
		return &LostError{Replica: c.replica, Silence: silence}
	}
	return nil
}

// Ready is a check of readiness.
func (c *Contact) Ready(*http.Request) error {
	if silence := c.Silence(); silence >= lostAfter {
		return fmt.Errorf("no answer from the API server for %s", silence.Truncate(time.Second))
	}
	return nil
}

// While returns a context that also ends, with a LostError as its cause, when the
// contact does. The caller must call stop when it needs it no longer.
func (c *Contact) While(ctx context.Context) (while context.Context, stop func()) {
	spell := c.spell.Load()
	while, cancel := context.WithCancelCause(ctx)
	forget := context.AfterFunc(spell.ctx, func() { cancel(context.Cause(spell.ctx)) })
	return while, func() {
		forget()
		cancel(nil)
	}
}

// Wrap has the answers noted that come through a transport.
func (c *Contact) Wrap(next http.RoundTripper) http.RoundTripper {
	return &transport{contact: c, next: next}
}

type transport struct {
	contact *Contact
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err == nil && isAnswer(response.StatusCode) {
		t.contact.hear()
	}
	return response, err //nolint:wrapcheck // the transport's own
}

// isAnswer reports whether the API server works, for this client too.
func isAnswer(status int) bool {
	return status < http.StatusInternalServerError && status != http.StatusUnauthorized && status != http.StatusTooManyRequests
}

func (c *Contact) hear() {
	c.heard.Store(int64(c.clock.Since(c.start)))
	if spell := c.spell.Load(); spell.ctx.Err() != nil {
		c.spell.CompareAndSwap(spell, newSpell())
	}
}

// lose ends the present spell if there is no contact.
func (c *Contact) lose() {
	spell := c.spell.Load()
	err := c.Err()
	if err == nil {
		return
	}
	spell.end(err)
	if c.Err() == nil { // An answer came meanwhile, and found the spell alive.
		c.spell.CompareAndSwap(spell, newSpell())
	}
}
