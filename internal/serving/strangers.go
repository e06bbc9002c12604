// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"crypto/tls"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

const (
	// maxStrangers bounds the connections that strangers keep open. With the garbage of their handshakes, 1,000
	// took 131 MiB.
	maxStrangers = 400
	// maxCalling is the same for the addresses of known callers. Three API servers have 1,800 requests in flight by default, and
	// open a connection for nearly each of them.
	maxCalling = 2000
	// strangerWithin is how long a connection may take for its handshake and for the head of its first request. It is longer
	// than an API server waits for an answer: a request fails if the connection that was opened for it is closed before.
	strangerWithin = webhookconfig.Timeout + time.Second
	// callsWithin is for how long the address of a known caller remains one, and calledEvery how often at most a call over one
	// connection says so.
	callsWithin, calledEvery = time.Hour, time.Minute
)

// strangers is a listener that bounds the connections over which no request with an accepted token has come.
// If there are too many, it closes the oldest one of the address that has most of them: one pod that opens very
// many connections ends only its own. Connections from addresses of known callers are bounded apart from all others.
type strangers struct {
	net.Listener
	clock clock.WithDelayedExecution

	// mu guards the fields below.
	mu              sync.Mutex
	others, calling crowd
	// address -> when a request with an accepted token came from it, but for calledEvery
	callers map[string]time.Time
}

// crowd has connections of strangers.
type crowd struct {
	// most is how many there may be.
	most int
	// waiting are the connections, the oldest first.
	waiting []*connection
	// address -> how many of them come from it
	sources map[string]*caller
}

type caller struct {
	address string
	number  int
}

func newStrangers(listener net.Listener, clock clock.WithDelayedExecution) *strangers {
	return &strangers{
		Listener: listener, clock: clock, callers: map[string]time.Time{},
		others:  crowd{most: maxStrangers, sources: map[string]*caller{}},
		calling: crowd{most: maxCalling, sources: map[string]*caller{}},
	}
}

// connection is a connection that a listener of strangers has accepted.
type connection struct {
	net.Conn
	of *strangers
	// among and from are guarded by the mutex of strangers.
	among *crowd
	from  *caller
	// late closes it.
	late clock.Timer
	// called is when a request with an accepted token came over it, but for calledEvery; nil for never.
	called atomic.Pointer[time.Time]
}

// Accept implements net.Listener.
func (s *strangers) Accept() (net.Conn, error) {
	accepted, err := s.Listener.Accept()
	if err != nil {
		return nil, err //nolint:wrapcheck // the server looks at it
	}
	c := &connection{Conn: accepted, of: s}
	c.late = s.clock.AfterFunc(strangerWithin, func() { _ = c.end() })
	if excess := s.add(c); excess != nil {
		_ = excess.Close()
	}
	return c, nil
}

// add returns the connection that must be closed for the new one; nil for none.
func (s *strangers) add(c *connection) (excess *connection) {
	address := c.address()
	s.mu.Lock()
	defer s.mu.Unlock()
	c.among = &s.others
	if last, called := s.callers[address]; called && s.clock.Since(last) < callsWithin {
		c.among = &s.calling
	}
	return c.among.add(c, address)
}

func (a *crowd) add(c *connection, address string) (excess *connection) {
	if c.from = a.sources[address]; c.from == nil {
		c.from = &caller{address: address}
		a.sources[address] = c.from
	}
	c.from.number++
	a.waiting = append(a.waiting, c)
	if len(a.waiting) <= a.most {
		return nil
	}
	for _, one := range a.waiting {
		if excess == nil || one.from.number > excess.from.number {
			excess = one
		}
	}
	return excess
}

// remove takes a connection from the strangers, if it is one.
func (s *strangers) remove(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.among.remove(c)
}

func (a *crowd) remove(c *connection) {
	at := slices.Index(a.waiting, c)
	if at < 0 {
		return
	}
	a.waiting = slices.Delete(a.waiting, at, at+1)
	c.from.number--
	if c.from.number == 0 {
		delete(a.sources, c.from.address)
	}
}

// called notes that a request with an accepted token came from an address. Its other connections are a caller's from now on,
// maxStrangers of them at most, even if a caller has as many as it may.
func (s *strangers) called(now time.Time, address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.callers, func(_ string, last time.Time) bool { return now.Sub(last) >= callsWithin })
	s.callers[address] = now
	if s.others.sources[address] == nil {
		return
	}
	for _, c := range slices.Clone(s.others.waiting) {
		if c.from.address == address {
			s.others.remove(c)
			c.among = &s.calling
			c.among.add(c, address)
		}
	}
}

func (c *connection) address() string {
	address, _, _ := net.SplitHostPort(c.RemoteAddr().String())
	return address
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.asks()
	return c.end()
}

func (c *connection) end() error {
	c.of.remove(c)
	return c.Conn.Close() //nolint:wrapcheck // as if it were not wrapped
}

// asks is called when the head of a request has come.
func (c *connection) asks() {
	if c != nil {
		c.late.Stop()
	}
}

// accepted is called when the caller has shown an accepted token: it is no stranger.
func (c *connection) accepted() {
	if c == nil {
		return
	}
	now := c.of.clock.Now()
	before := c.called.Load()
	if before != nil && now.Sub(*before) < calledEvery {
		return
	}
	c.called.Store(&now)
	if before == nil {
		c.of.remove(c)
	}
	c.of.called(now, c.address())
}

type connectionKey struct{}

// withConnection is http.Server's ConnContext for a TLS listener over strangers.
func withConnection(ctx context.Context, secured net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, secured.(*tls.Conn).NetConn()) //nolint:errcheck,forcetypeassert // no others
}

// connectionOf returns the connection of a request; nil in tests without one.
func connectionOf(ctx context.Context) *connection {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	return c
}
