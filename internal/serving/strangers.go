// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

const (
	// maxStrangers bounds the connections that strangers keep open. With the garbage of their handshakes, 1,000
	// took 131 MiB.
	maxStrangers = 400
	// strangerWithin is how long a connection may take for its handshake and for the head of its first request. An API
	// server opens connections that it uses only later: a request fails if it begins in the moment in which its
	// connection is closed for that.
	strangerWithin = 5 * time.Second
)

// strangers is a listener that bounds the connections over which no request with an accepted token has come.
// If there are too many, it closes the oldest one of the address that has most of them: one pod that opens very
// many connections ends only its own.
type strangers struct {
	net.Listener
	clock clock.WithDelayedExecution

	// mu guards the fields below.
	mu sync.Mutex
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
	return &strangers{Listener: listener, clock: clock, sources: map[string]*caller{}}
}

// connection is a connection that a listener of strangers has accepted.
type connection struct {
	net.Conn
	of *strangers
	// from is guarded by the mutex of strangers.
	from *caller
	// late closes it.
	late clock.Timer
	// known: a request with an accepted token has come over it.
	known atomic.Bool
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
	address, _, _ := net.SplitHostPort(c.RemoteAddr().String())
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.from = s.sources[address]; c.from == nil {
		c.from = &caller{address: address}
		s.sources[address] = c.from
	}
	c.from.number++
	s.waiting = append(s.waiting, c)
	if len(s.waiting) <= maxStrangers {
		return nil
	}
	for _, one := range s.waiting {
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
	at := slices.Index(s.waiting, c)
	if at < 0 {
		return
	}
	s.waiting = slices.Delete(s.waiting, at, at+1)
	c.from.number--
	if c.from.number == 0 {
		delete(s.sources, c.from.address)
	}
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
	if c != nil && !c.known.Swap(true) {
		c.of.remove(c)
	}
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
