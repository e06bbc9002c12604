// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"io"
	"net/http"
	"path"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxBehind is how many pieces of a watch may be under way. What is late longer
// than that would take is held back at the API server.
const maxBehind = 10000

// SetLag makes the events of all watches, those that are open too, late by so
// much: the replica's caches are stale.
func (p *Proxy) SetLag(lag time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lag = lag
}

// HoldWatches keeps back what watches receive, those that are open and those that are
// opened, until it is called with false. Then they pass on all of it. The connections
// stay open, and all other calls are served: the replica can't tell it from a cluster in
// which nothing happens. If resources are named, only their watches are kept back.
func (p *Proxy) HoldWatches(hold bool, resources ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case hold && p.held == nil:
		p.held, p.heldOf = make(chan struct{}), resources
		for open := range p.watches {
			if p.lockedHolds(open.path) {
				p.counts[Held]++
			}
		}
	case !hold && p.held != nil:
		close(p.held)
		p.held = nil
	}
}

// holding returns what is closed when the watch of a path is kept back no more; nil if it
// isn't.
func (p *Proxy) holding(watch string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lockedHolds(watch) {
		return p.held
	}
	return nil
}

func (p *Proxy) lockedHolds(watch string) bool {
	return p.held != nil && (len(p.heldOf) == 0 || slices.Contains(p.heldOf, path.Base(watch)))
}

// CutWatches breaks the connections of all open watches. With gone, what
// watches again is told that its version is too old, so that it must list.
func (p *Proxy) CutWatches(gone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for open := range p.watches {
		p.counts[Cut]++
		open.cut()
		if gone {
			p.gone[open.path] = true
		}
	}
}

func (p *Proxy) serveWatch(writer http.ResponseWriter, request *http.Request) {
	if p.takeGone(request) {
		answer(writer, http.StatusGone, metav1.StatusReasonExpired)
		return
	}
	p.forward(func(body io.ReadCloser) io.ReadCloser { return p.open(request.URL.Path, body) }).ServeHTTP(writer, request)
}

// takeGone tells whether a watch goes on from a version that is to be gone. One
// that begins with a list is not affected by that.
func (p *Proxy) takeGone(request *http.Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gone[request.URL.Path] || request.URL.Query().Get("sendInitialEvents") == "true" {
		return false
	}
	delete(p.gone, request.URL.Path)
	p.counts[Gone]++
	return true
}

func (p *Proxy) open(from string, body io.ReadCloser) *events {
	opened := &events{proxy: p, path: from, body: asItIs(body), pieces: make(chan piece, maxBehind), ended: make(chan struct{})}
	opened.cut = sync.OnceFunc(func() { close(opened.ended) })
	p.mu.Lock()
	p.watches[opened] = true
	p.mu.Unlock()
	p.running.Go(opened.receive)
	return opened
}

func (p *Proxy) behind() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lag
}

func (p *Proxy) closed(events *events) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.watches, events)
}

// piece is a part of a watch's answer, and when it may be passed on.
type piece struct {
	at    time.Time
	bytes []byte
	err   error
}

// events is the body of a watch's answer, passed on late and until it is cut.
type events struct {
	proxy  *Proxy
	path   string
	body   io.ReadCloser
	pieces chan piece
	// rest is what has been received and not read yet.
	rest []byte
	// cut closes ended, once.
	cut   func()
	ended chan struct{}
}

// receive takes in what arrives at the time when it arrives.
func (e *events) receive() {
	for {
		buffer := make([]byte, 16<<10)
		n, err := e.body.Read(buffer)
		select {
		case e.pieces <- piece{at: time.Now().Add(e.proxy.behind()), bytes: buffer[:n], err: err}:
		case <-e.ended:
			return
		}
		if err != nil {
			return
		}
	}
}

// Read implements io.Reader.
func (e *events) Read(into []byte) (int, error) {
	for len(e.rest) == 0 {
		next, err := e.next()
		if err != nil {
			return 0, err
		}
		e.rest = next
	}
	n := copy(into, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// next waits for the next piece, and until it may be passed on.
func (e *events) next() ([]byte, error) {
	var next piece
	select {
	case next = <-e.pieces:
	case <-e.ended:
		return nil, context.Canceled
	}
	select {
	case <-time.After(time.Until(next.at)):
	case <-e.ended:
		return nil, context.Canceled
	}
	for held := e.proxy.holding(e.path); held != nil; held = e.proxy.holding(e.path) {
		select {
		case <-held:
		case <-e.ended:
			return nil, context.Canceled
		}
	}
	if len(next.bytes) == 0 && next.err != nil {
		return nil, next.err
	}
	if next.err != nil {
		e.pieces <- piece{at: next.at, err: next.err}
	}
	return next.bytes, nil
}

// Close implements io.Closer.
func (e *events) Close() error {
	e.cut()
	e.proxy.closed(e)
	return e.body.Close()
}
