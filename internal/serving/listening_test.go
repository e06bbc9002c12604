// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// listening is a server with an endpoint that answers once it is let.
type listening struct {
	*Server
	callers *Callers
	address string
	url     string
	client  *http.Client
	// arrived has the context of each request that has come.
	arrived chan context.Context
	// let lets all requests be answered once it is closed.
	let chan struct{}
	// ended has the error that Start returned.
	ended chan error
}

func listen(t *testing.T, changes ...func(*Server)) (*listening, context.CancelFunc) {
	t.Helper()
	port := freePort(t)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	setup, err := New(clock.RealClock{}, Options{URL: "https://" + address, Port: port})
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		ForceAttemptHTTP2: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	s := &listening{
		Server: setup.Server, callers: setup.Callers, address: address, url: "https://" + address + "/" + string(known) + "/asked", client: &http.Client{Transport: transport},
		arrived: make(chan context.Context, 1), let: make(chan struct{}), ended: make(chan error, 1),
	}
	s.Register("/asked", http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		_, _ = io.Copy(io.Discard, request.Body)
		s.arrived <- request.Context()
		select {
		case <-request.Context().Done():
		case <-s.let:
			_, _ = io.WriteString(response, request.Proto)
		}
	}))
	setup.Callers.take(1, []webhookconfig.Token{known}, nil)
	for _, change := range changes {
		change(s.Server)
	}
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	if err := s.StartedChecker()(nil); err == nil {
		t.Error("it says that it serves before it does")
	}
	go func() { s.ended <- s.Start(ctx) }()
	s.waitUntil(t, func() bool { return s.StartedChecker()(nil) == nil })
	return s, stop
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// waitUntil polls for a change by the network.
func (s *listening) waitUntil(t *testing.T, reached func() bool) {
	t.Helper()
	for range 1000 {
		if reached() {
			return
		}
		clock.RealClock{}.Sleep(10 * time.Millisecond)
	}
	t.Fatal("not reached within ten seconds")
}

// stopsListening waits until the server has seen that it must stop.
func (s *listening) stopsListening(t *testing.T) {
	t.Helper()
	s.waitUntil(t, func() bool {
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.address)
		if err == nil {
			_ = connection.Close()
		}
		return err != nil
	})
}

// ask sends a request, and returns its answer.
func (s *listening) ask(ctx context.Context) <-chan string {
	answer := make(chan string, 1)
	go func() {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, http.NoBody)
		if err != nil {
			answer <- err.Error()
			return
		}
		response, err := s.client.Do(request)
		if err != nil {
			answer <- "no answer"
			return
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		answer <- string(body)
	}()
	return answer
}

// A caller that waits is answered after the server was told to stop, and a caller that has gone is known to have
// gone. All of it is HTTP/1.1, also if the client would rather speak HTTP/2.
func TestAServerThatStopsKnowsWhoStillWaits(t *testing.T) {
	server, stop := listen(t)
	asking, leave := context.WithCancel(t.Context())
	gone := server.ask(asking)
	goneContext := <-server.arrived
	waiting := server.ask(t.Context())
	waitingContext := <-server.arrived

	stop()
	server.stopsListening(t)
	if goneContext.Err() != nil || waitingContext.Err() != nil {
		t.Fatalf("requests ended with the server: %v, %v", goneContext.Err(), waitingContext.Err())
	}
	leave()
	<-gone
	server.waitUntil(t, func() bool { return goneContext.Err() != nil })
	if err := waitingContext.Err(); err != nil {
		t.Errorf("the other request ended, too: %v", err)
	}
	close(server.let)
	if got := <-waiting; got != "HTTP/1.1" {
		t.Errorf("got %q", got)
	}
	if err := <-server.ended; err != nil {
		t.Error(err)
	}
}

// Another replica may have to wait for the function that is called then, so the function doesn't wait for requests. The
// server does wait for the function.
func TestAServerThatStopsSaysSoBeforeItHasAnswered(t *testing.T) {
	said, heard := make(chan error), make(chan struct{})
	server, stop := listen(t, func(s *Server) {
		s.OnStop(func(ctx context.Context) {
			said <- ctx.Err()
			<-heard
		})
	})
	waiting := server.ask(t.Context())
	<-server.arrived
	stop()
	if err := <-said; err != nil {
		t.Errorf("its context has ended: %v", err)
	}
	close(server.let)
	if got := <-waiting; got != "HTTP/1.1" {
		t.Errorf("got %q", got)
	}
	select {
	case err := <-server.ended:
		t.Errorf("it has ended before it was heard: %v", err)
	default:
	}
	close(heard)
	if err := <-server.ended; err != nil {
		t.Error(err)
	}
}

// A request that takes too long gets no answer, so that its context ends before the process.
func TestASlowConnectionIsClosed(t *testing.T) {
	arrived := make(chan context.Context, 1)
	server := &http.Server{
		ReadHeaderTimeout: strangerWithin,
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
			arrived <- request.Context()
			<-request.Context().Done()
		}),
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	asking := &listening{url: "http://" + listener.Addr().String(), client: &http.Client{Transport: &http.Transport{}}}
	answer := asking.ask(t.Context())
	request := <-arrived
	if err := drain(t.Context(), server, 10*time.Millisecond); err != nil {
		t.Error(err)
	}
	<-request.Done()
	if got := <-answer; got != "no answer" {
		t.Errorf("got %q", got)
	}
}

func TestAnAddressInUseIsAnError(t *testing.T) {
	server, stop := listen(t)
	second := newServer(server.options, server.callers, false)
	if err := second.Start(t.Context()); err == nil {
		t.Error("want an error")
	}
	stop()
	if err := <-server.ended; err != nil {
		t.Error(err)
	}
}
