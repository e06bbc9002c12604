// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

const (
	// lostAfter is how long the API server may be silent.
	lostAfter = 5 * time.Second
	// unprovedFor is how long it may be doubtful whether its history is the same: a silence, and as long for the proof.
	unprovedFor = 2 * lostAfter
	// askAfter is after how much silence it is asked something.
	askAfter = time.Second
	// askAgain is the least time between two questions if it answers.
	askAgain = 20 * time.Millisecond
	// askTimeout is how long the API server has for the answer.
	askTimeout = 2 * time.Second
	// dialTimeout is client-go's.
	dialTimeout = 30 * time.Second
)

// Contact is the contact with the API server. Its methods may be called
// concurrently. Time is measured by a clock that is never set: the difference of two
// readings in this process counts.
type Contact struct {
	clock   clock.Clock
	replica string
	start   time.Time
	// heard is when the API server last answered, since the start.
	heard atomic.Int64
	// spell is the present time of contact.
	spell atomic.Pointer[spell]
	// breaks counts the connections that the API server ended, the calls that failed, and the times without contact.
	// Between any two of them, the history is the same. proved is up to which break it was found to be the same.
	// Both are written under mu.
	breaks, proved atomic.Uint64
	// doubted has an element if the API server may answer a question now: a break came while nothing was doubted,
	// or an answer while something was.
	doubted chan struct{}

	// mu guards the fields below.
	mu sync.Mutex
	// proof is closed with the next proof.
	proof chan struct{}
	// unproved is when the first break came that isn't proved, since the start, and failure why no proof came.
	unproved time.Duration
	failure  error
}

// spell is a time of contact.
type spell struct {
	// ctx ends with the contact.
	ctx context.Context //nolint:containedctx // waits end with it
	end context.CancelCauseFunc
}

// LostError says that the API server has not answered this replica for too long.
type LostError struct {
	Replica string
	Silence time.Duration
}

// Error implements error.
func (e *LostError) Error() string {
	return outcomes.LostContact.Text(e.Replica, e.Silence.Truncate(time.Second))
}

// Advised implements outcomes.Advised.
func (*LostError) Advised() {}

// DoubtError says that this replica can't find out whether the API server still has the history that the replica
// remembers.
type DoubtError struct {
	Replica string
	// Why is the last failure; nil if there was no answer.
	Why error
}

// Error implements error.
func (e *DoubtError) Error() string {
	why := "no answer"
	if e.Why != nil {
		why = e.Why.Error()
	}
	return outcomes.DoubtfulHistory.Text(e.Replica, why)
}

// Advised implements outcomes.Advised.
func (*DoubtError) Advised() {}

// Unwrap returns the last failure.
func (e *DoubtError) Unwrap() error { return e.Why }

// Replica is the name of this replica.
func (c *Contact) Replica() string { return c.replica }

// NewContact begins with contact.
func NewContact(clock clock.Clock, replica string) *Contact {
	c := &Contact{clock: clock, replica: replica, start: clock.Now(), doubted: make(chan struct{}, 1), proof: make(chan struct{})}
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
	_, _, err := c.doubt()
	return err
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
	switch {
	case err == nil && isAnswer(response.StatusCode):
		t.contact.hear()
	case err == nil && response.StatusCode >= http.StatusInternalServerError,
		err != nil && !errors.Is(request.Context().Err(), context.Canceled):
		t.contact.broke()
	}
	return response, err //nolint:wrapcheck // the transport's own
}

// isAnswer reports whether the API server works, for this client too.
func isAnswer(status int) bool {
	return status < http.StatusInternalServerError && status != http.StatusUnauthorized && status != http.StatusTooManyRequests
}

func (c *Contact) hear() {
	if c.Silence() >= lostAfter {
		c.mu.Lock()
		c.unproved = c.clock.Since(c.start)
		c.breaks.Add(1)
		c.mu.Unlock()
	}
	c.heard.Store(int64(c.clock.Since(c.start)))
	if spell := c.spell.Load(); spell.ctx.Err() != nil {
		c.spell.CompareAndSwap(spell, newSpell())
	}
	if c.isDoubted() {
		c.askSoon()
	}
}

// askSoon has the Monitor ask as soon as it may.
func (c *Contact) askSoon() {
	select {
	case c.doubted <- struct{}{}:
	default:
	}
}

// Dial makes a connection whose end is noted. A restore of etcd follows a stop of all API servers, as Kubernetes asks:
// so connections end, or calls fail if a proxy keeps them.
func (c *Contact) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout}
	made, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err //nolint:wrapcheck // the error names the address
	}
	return connection{made, c}, nil
}

type connection struct {
	net.Conn
	contact *Contact
}

// Read implements net.Conn. It notes that the other side has ended the connection.
func (c connection) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	if err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.contact.broke()
	}
	return n, err //nolint:wrapcheck // it is as if this weren't there
}

func (c *Contact) isDoubted() bool { return c.proved.Load() < c.breaks.Load() }

// broke notes a break.
func (c *Contact) broke() {
	c.mu.Lock()
	defer c.mu.Unlock()
	isFirst := !c.isDoubted()
	c.breaks.Add(1)
	if isFirst {
		c.unproved = c.clock.Since(c.start)
		c.askSoon()
	}
}

// Await returns once all knowledge from before the call is certain: the API server is there, and its history is the one
// that this process has seen. It returns a LostError, a DoubtError, or the cause of the end of ctx.
func (c *Contact) Await(ctx context.Context) error {
	if err := c.Err(); err != nil {
		return err // before breaks are read: the end of a silence is one
	}
	for breaks := c.breaks.Load(); c.proved.Load() < breaks; {
		left, proof, err := c.doubt()
		if err != nil {
			return err
		}
		timer := c.clock.NewTimer(left)
		select {
		case <-proof:
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("waiting for proof that the API server knows what this replica knows: %w", context.Cause(ctx))
		}
		timer.Stop()
	}
	return c.Err()
}

// doubt returns in how long it returns a DoubtError, because no proof has come for too long, and a channel that is
// closed with the next proof.
func (c *Contact) doubt() (left time.Duration, proof <-chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left = c.unproved + unprovedFor - c.clock.Since(c.start)
	if c.isDoubted() && left <= 0 {
		err = &DoubtError{Replica: c.replica, Why: c.failure}
	}
	return left, c.proof, err
}

// prove notes that the history was found to be the same after so many breaks, or why that couldn't be found out.
func (c *Contact) prove(breaks uint64, failure error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure = failure; failure != nil {
		return
	}
	c.proved.Store(max(c.proved.Load(), breaks))
	if c.isDoubted() { // by breaks since then
		c.unproved = c.clock.Since(c.start)
		c.askSoon()
	}
	close(c.proof)
	c.proof = make(chan struct{})
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
