// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// dialTimeout is how long a backend may take to accept a connection.
const dialTimeout = time.Second

// Balancer stands for a Service in front of several replicas: it accepts TCP
// connections on loopback and hands each to the next backend in turn. One that
// accepts no connection is passed over, as an endpoint is that isn't ready.
type Balancer struct {
	listener net.Listener
	// running are the goroutines that Close waits for.
	running sync.WaitGroup
	next    atomic.Uint64

	// mu guards what follows.
	mu       sync.Mutex
	backends []int
	// open connections -> the port of their backend
	open map[net.Conn]int
	done bool
}

// NewBalancer starts a Balancer on a free port. It has no backend at first. The
// caller must call Close.
func NewBalancer() (*Balancer, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return nil, fmt.Errorf("starting the balancer: %w", err)
	}
	b := &Balancer{listener: listener, open: map[net.Conn]int{}}
	b.running.Go(b.accept)
	return b, nil
}

// URL is what the API server is to call.
func (b *Balancer) URL() string {
	return "https://" + b.listener.Addr().String()
}

// SetBackends replaces the ports that new connections are handed to. Those to
// a backend that is no longer one are cut.
func (b *Balancer) SetBackends(ports ...int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends = ports
	wanted := map[int]bool{}
	for _, port := range ports {
		wanted[port] = true
	}
	for connection, port := range b.open {
		if !wanted[port] {
			_ = connection.Close()
		}
	}
}

// Drain hands no more new connections to a backend, and leaves it those that are
// open, as a Service does to a pod that terminates.
func (b *Balancer) Drain(port int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends = slices.DeleteFunc(slices.Clone(b.backends), func(backend int) bool { return backend == port })
}

// Cut ends all connections, so that those made next are spread over all
// backends: callers keep connections, and a new backend is handed none of them.
func (b *Balancer) Cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for connection := range b.open {
		_ = connection.Close()
	}
}

// Close cuts all connections, and returns when nothing runs any more.
func (b *Balancer) Close() error {
	b.SetBackends()
	b.mu.Lock()
	b.done = true
	b.mu.Unlock()
	err := b.listener.Close()
	b.running.Wait()
	return err
}

func (b *Balancer) accept() {
	for {
		client, err := b.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			b.running.Go(func() { b.serve(client) })
		}
	}
}

func (b *Balancer) serve(client net.Conn) {
	defer client.Close()
	backend, port, err := b.dial()
	if err != nil {
		return // The client sees its connection closed, as with a Service that has no endpoint.
	}
	defer backend.Close()
	if !b.track(client, port) {
		return
	}
	defer b.untrack(client)
	var both sync.WaitGroup
	both.Go(func() { pipe(backend, client) })
	both.Go(func() { pipe(client, backend) })
	both.Wait()
}

// pipe copies until either end is closed, and then closes both.
func pipe(to, from net.Conn) {
	_, _ = io.Copy(to, from) // However it ended, there is no more to say.
	_ = to.Close()
	_ = from.Close()
}

// dial connects to the next backend in turn that accepts.
func (b *Balancer) dial() (net.Conn, int, error) {
	b.mu.Lock()
	backends := b.backends
	b.mu.Unlock()
	turn := b.next.Add(1)
	errs := []error{errors.New("no backend")}
	for i := range backends {
		port := backends[(turn+uint64(i))%uint64(len(backends))]
		connection, err := net.DialTimeout("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)), dialTimeout)
		if err == nil {
			return connection, port, nil
		}
		errs = append(errs, err)
	}
	return nil, 0, errors.Join(errs...)
}

func (b *Balancer) track(client net.Conn, port int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done {
		return false
	}
	b.open[client] = port
	return true
}

func (b *Balancer) untrack(client net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, client)
}
