// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// dialled is the side of the server of a connection from an address.
type dialled struct {
	net.Conn
	address string
}

func (d dialled) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(d.address), Port: 1}
}

// dialling is a listener that is handed its connections.
type dialling struct {
	net.Listener
	next chan net.Conn
}

func (d dialling) Accept() (net.Conn, error) { return <-d.next, nil }

// dial has a connection accepted, and returns a channel that is closed with it.
func (s *strangers) dial(t *testing.T, address string) (near *connection, closed <-chan struct{}) {
	t.Helper()
	far, pipe := net.Pipe()
	s.Listener.(dialling).next <- dialled{pipe, address}
	accepted, err := s.Accept()
	if err != nil {
		t.Fatal(err)
	}
	end := make(chan struct{})
	go func() {
		defer close(end)
		_, _ = far.Read(make([]byte, 1))
	}()
	return accepted.(*connection), end
}

// open returns the strangers.
func (s *strangers) open() []*connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Concat(s.others.waiting, s.calling.waiting)
}

func isClosed(closed <-chan struct{}) bool {
	synctest.Wait()
	select {
	case <-closed:
		return true
	default:
		return false
	}
}

func newDialling() *strangers {
	return newStrangers(dialling{next: make(chan net.Conn, 1)}, clock.RealClock{})
}

func TestAStrangerKeepsAConnectionForElevenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		callers := NewCallers(clock.RealClock{})
		callers.live = &stored{token: known}
		callers.take(1, []webhookconfig.Token{known}, nil)
		guard := newGuard(callers, false, nobody{}, http.NotFoundHandler())
		s := newDialling()
		ask := func(c *connection, token webhookconfig.Token) {
			request := httptest.NewRequest(http.MethodPost, "/"+string(token)+"/objects", http.NoBody)
			guard.ServeHTTP(httptest.NewRecorder(), request.WithContext(context.WithValue(t.Context(), connectionKey{}, c)))
		}
		_, idle := s.dial(t, "192.0.2.1")
		asking, asks := s.dial(t, "192.0.2.1")
		calling, calls := s.dial(t, "192.0.2.2")
		ask(asking, next)
		ask(calling, known)
		clock.RealClock{}.Sleep(strangerWithin)
		if !isClosed(idle) || isClosed(asks) || isClosed(calls) {
			t.Error("want only that closed over which no request has come")
		}
		if open := s.open(); !slices.Equal(open, []*connection{asking}) {
			t.Errorf("%d are strangers, want that with a token that isn't known", len(open))
		}
		_, _ = asking.Close(), calling.Close()
		if open := s.open(); !isClosed(asks) || len(open) != 0 || len(s.others.sources) != 0 {
			t.Errorf("%d connections of %d addresses are left", len(open), len(s.others.sources))
		}
		clock.RealClock{}.Sleep(liveEvery)
	})
}

func TestTheOldestStrangerOfTheBusiestAddressGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newDialling()
		_, honest := s.dial(t, "192.0.2.1")
		accepted, served := s.dial(t, "192.0.2.2")
		accepted.asks()
		accepted.accepted()
		var ended []<-chan struct{}
		for i := range 2 * maxStrangers {
			_, closed := s.dial(t, "192.0.2."+strconv.Itoa(9+i%50))
			ended = append(ended, closed)
		}
		if open := s.open(); len(open) != maxStrangers {
			t.Errorf("%d are open", len(open))
		}
		open := ended[len(ended)-maxStrangers+1:]
		if isClosed(honest) || isClosed(served) || slices.ContainsFunc(open, isClosed) || !isClosed(ended[len(ended)-maxStrangers]) {
			t.Error("want the oldest closed, and those of an address with few kept")
		}
		clock.RealClock{}.Sleep(strangerWithin)
		if !isClosed(honest) || isClosed(served) {
			t.Error("want only the accepted one kept")
		}
		_ = accepted.Close()
	})
}

// With a thousand clients, an API server opens a connection for nearly each request. None was closed then but those over
// which a request was about to come, which failed.
func TestACallersManyConnectionsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newDialling()
		first, _ := s.dial(t, "192.0.2.1")
		first.asks()
		first.accepted()
		var calls []<-chan struct{}
		for range maxCalling {
			_, closed := s.dial(t, "192.0.2.1")
			calls = append(calls, closed)
		}
		for range 2 * maxStrangers {
			_, _ = s.dial(t, "192.0.2.2")
		}
		if slices.ContainsFunc(calls, isClosed) {
			t.Error("a known caller's connection was closed")
		}
		if _, _ = s.dial(t, "192.0.2.1"); !isClosed(calls[0]) || isClosed(calls[1]) {
			t.Error("want the oldest of too many closed")
		}
		clock.RealClock{}.Sleep(strangerWithin)
		synctest.Wait()
		if open := s.open(); len(open) != 0 {
			t.Errorf("%d are open without a request", len(open))
		}
		clock.RealClock{}.Sleep(callsWithin)
		late, _ := s.dial(t, "192.0.2.1")
		if late.among != &s.others {
			t.Error("want the address forgotten after an hour")
		}
		first.accepted()
		if late.among != &s.calling {
			t.Error("want its connections known as a caller's again")
		}
		_ = first.Close()
		clock.RealClock{}.Sleep(strangerWithin)
	})
}

// acceptsOne is a listener with one connection.
type acceptsOne struct {
	net.Listener
	next chan net.Conn
}

func (l acceptsOne) Accept() (net.Conn, error) {
	if next, ok := <-l.next; ok {
		return next, nil
	}
	return nil, net.ErrClosed
}

func (acceptsOne) Close() error { return nil }

// An API server opens a connection, and its request may come over it much later. The server itself may not end that sooner
// than strangers do.
func TestTheServerWaitsAsLongForTheFirstRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		setup, err := New(clock.RealClock{}, Options{URL: "https://127.0.0.1:9443"})
		if err != nil {
			t.Fatal(err)
		}
		far, near := net.Pipe()
		listener := acceptsOne{next: make(chan net.Conn, 1)}
		listener.next <- dialled{near, "192.0.2.1"}
		server, ended := setup.Server.http(t.Context()), make(chan error)
		config := &tls.Config{GetCertificate: setup.Certificates.Present}
		go func() { ended <- server.Serve(tls.NewListener(newStrangers(listener, clock.RealClock{}), config)) }()
		caller := tls.Client(far, &tls.Config{InsecureSkipVerify: true})
		defer func() {
			close(listener.next)
			_, _ = far.Close(), server.Close()
			<-ended
		}()
		if err := caller.HandshakeContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		clock.RealClock{}.Sleep(strangerWithin - time.Second)
		if _, err := io.WriteString(caller, "GET / HTTP/1.1\r\nHost: here\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(caller), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusNotFound {
			t.Errorf("got %s", answer.Status)
		}
	})
}
