// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Proxy serves one replica. Its methods may be called from several goroutines.
type Proxy struct {
	server    *http.Server
	url       string
	target    *url.URL
	transport http.RoundTripper
	// running are the calls that Close waits for.
	running sync.WaitGroup

	// mu guards what follows.
	mu     sync.Mutex
	random *rand.Rand
	rates  Rates
	counts map[Fault]int
	// writes is how many writes of ledgers there were.
	writes int
	// lag is by how much events of watches are late.
	lag time.Duration
	// held is closed when watches pass on again what they receive; nil while they do.
	held chan struct{}
	// heldOf are the resources of which that is so; empty for all.
	heldOf []string
	// watches that are open
	watches map[*events]bool
	// gone are the paths whose next watch is told that its version is gone.
	gone map[string]bool
	// frozen is closed when calls are served again; nil while they are.
	frozen chan struct{}
	// severed: the connection of each call breaks.
	severed bool
}

// Start serves on a free port of loopback what config leads to. The caller must
// call Close.
func Start(config *rest.Config, seed uint64) (*Proxy, error) {
	target, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("making the proxy's transport: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the proxy: %w", err)
	}
	p := &Proxy{
		url: "http://" + listener.Addr().String(), target: target, transport: transport,
		random: rand.New(rand.NewPCG(seed, seed)), counts: map[Fault]int{},
		watches: map[*events]bool{}, gone: map[string]bool{},
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	p.running.Go(func() { _ = p.server.Serve(listener) }) // It ends with Close.
	return p, nil
}

// Config is what the replica is to be given instead of the API server's.
func (p *Proxy) Config() *rest.Config {
	return &rest.Config{Host: p.url}
}

// Close cuts all connections, and returns when nothing runs any more.
func (p *Proxy) Close() error {
	p.Thaw()
	err := p.server.Close()
	p.running.Wait()
	return err
}

// Counts tells how often each fault was injected.
func (p *Proxy) Counts() map[Fault]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

// Writes tells how many writes of ledgers the replica has tried.
func (p *Proxy) Writes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.writes
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	p.running.Add(1)
	defer p.running.Done()
	if frozen := p.gate(); frozen != nil {
		select {
		case <-frozen:
		case <-request.Context().Done():
			drop()
		}
	}
	switch {
	case request.URL.Query().Get("watch") == "true":
		p.serveWatch(writer, request)
	case isLedgerWrite(request):
		p.serveWrite(writer, request)
	default:
		p.forward(asItIs).ServeHTTP(writer, request)
	}
}

// Freeze lets nothing more arrive, of calls or of watches, and breaks no connection.
func (p *Proxy) Freeze() {
	p.HoldWatches(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = make(chan struct{})
}

// Sever breaks the connections of all watches, and of each call.
func (p *Proxy) Sever() {
	p.mu.Lock()
	p.severed = true
	p.mu.Unlock()
	p.CutWatches(false)
}

// Thaw ends both.
func (p *Proxy) Thaw() {
	p.HoldWatches(false)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.severed = false
	if p.frozen != nil {
		close(p.frozen)
		p.frozen = nil
	}
}

// gate returns what is closed when calls are served; nil if they are. It breaks the
// connection if that is severed.
func (p *Proxy) gate() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.severed {
		drop()
	}
	return p.frozen
}

// forward hands a call on. An API server that can't be reached looks to the
// replica as if it had called it itself: the connection breaks.
func (p *Proxy) forward(wrap func(io.ReadCloser) io.ReadCloser) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite:       func(outgoing *httputil.ProxyRequest) { outgoing.SetURL(p.target) },
		Transport:     p.transport,
		FlushInterval: -1,
		ModifyResponse: func(response *http.Response) error {
			response.Body = wrap(response.Body)
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { drop() },
	}
}

// quiet is an answer's body that breaks without a word: of this error httputil
// says nothing in the log.
type quiet struct{ io.ReadCloser }

func asItIs(body io.ReadCloser) io.ReadCloser { return quiet{body} }

// Read implements io.Reader.
func (q quiet) Read(into []byte) (int, error) {
	n, err := q.ReadCloser.Read(into)
	if err != nil && !errors.Is(err, io.EOF) {
		err = context.Canceled
	}
	return n, err
}

// drop ends the connection of the call that is being served without an answer.
func drop() {
	panic(http.ErrAbortHandler)
}

// detach keeps a call going when its caller gives up.
func detach(request *http.Request) (*http.Request, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(request.Context()), lateTimeout)
	return request.WithContext(ctx), cancel
}
