// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// usually bounds a read that several callers share: it obeys none of their contexts.
// Callers that come meanwhile wait for it and for a read after it.
const usually = 4 * time.Second

// Reads are reads that callers share. Its methods may be called concurrently.
type Reads[T any] struct {
	// The name of the read, for errors.
	what string
	read func(ctx context.Context, key string) (T, error)
	// timeout bounds each read.
	timeout time.Duration
	// apart is the least time between two reads of a key; zero for none.
	clock clock.Clock
	apart time.Duration

	// mu guards the fields below.
	mu sync.Mutex
	// key -> the read that has not begun yet; nil while only one is under way
	next map[string]*shared[T]
	// key -> whether a goroutine reads
	reading map[string]bool
	// key -> when the last read began; only if reads are kept apart
	began map[string]time.Time
}

// shared is one read, for all callers that wait for it.
type shared[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// NewReads makes Reads with a name for errors. The function may be called at any time, but never twice at once for
// the same key.
func NewReads[T any](what string, read func(ctx context.Context, key string) (T, error)) *Reads[T] {
	return &Reads[T]{
		what: what, read: read, timeout: usually, next: map[string]*shared[T]{}, reading: map[string]bool{}, began: map[string]time.Time{},
	}
}

// Apart has two reads of a key begin so long after one another, at least. Something is kept
// for each key, so there must be few. It must be called before the first read.
func (r *Reads[T]) Apart(clock clock.Clock, least time.Duration) *Reads[T] {
	r.clock, r.apart = clock, least
	return r
}

// Within gives each read more or less time. It must be called before the first read.
func (r *Reads[T]) Within(timeout time.Duration) *Reads[T] {
	r.timeout = timeout
	return r
}

// Get returns the outcome of a read that begins after this call, or ctx's error.
func (r *Reads[T]) Get(ctx context.Context, key string) (T, error) {
	read := r.join(ctx, key)
	select {
	case <-read.done:
		return read.value, read.err
	case <-ctx.Done():
		var zero T
		return zero, fmt.Errorf("waiting for %s %s: %w", r.what, key, context.Cause(ctx))
	}
}

func (r *Reads[T]) join(ctx context.Context, key string) *shared[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.next[key]
	if next == nil {
		next = &shared[T]{done: make(chan struct{})}
		r.next[key] = next
	}
	if !r.reading[key] {
		r.reading[key] = true
		go r.work(context.WithoutCancel(ctx), key)
	}
	return next
}

// work reads until no caller has asked since the last read began.
func (r *Reads[T]) work(ctx context.Context, key string) {
	for r.isAsked(key) {
		r.rest(key)
		read := r.begin(key)
		bounded, cancel := context.WithTimeout(ctx, r.timeout)
		read.value, read.err = r.read(bounded, key)
		cancel()
		close(read.done)
	}
}

// isAsked reports whether anybody waits for another read. If none does, the next
// caller begins to work again.
func (r *Reads[T]) isAsked(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := r.next[key] != nil
	if !asked {
		delete(r.reading, key)
	}
	return asked
}

// rest waits until the key may be read again.
func (r *Reads[T]) rest(key string) {
	if r.apart == 0 {
		return
	}
	r.mu.Lock()
	wait := r.began[key].Add(r.apart).Sub(r.clock.Now())
	r.mu.Unlock()
	if wait > 0 {
		<-r.clock.After(wait)
	}
}

// begin returns the read that callers wait for. Callers that ask from now on wait
// for the next.
func (r *Reads[T]) begin(key string) *shared[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	read := r.next[key]
	delete(r.next, key)
	if r.apart > 0 {
		r.began[key] = r.clock.Now()
	}
	return read
}
