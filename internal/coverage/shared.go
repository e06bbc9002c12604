/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package coverage

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// readTimeout bounds a read that several callers share: it obeys none of their
// contexts. Whoever calls meanwhile waits for it and for a read after it.
const readTimeout = 4 * time.Second

// shared lets callers share reads: each gets the outcome of one that began after
// its call, so that it is as fresh as one of the caller's own. Whoever calls
// while a read is under way shares the next one.
type shared[T any] struct {
	// what is read, for errors.
	what string
	// read must be safe to call at any time.
	read func(ctx context.Context, key string) (T, error)

	// mu guards what follows.
	mu sync.Mutex
	// key -> the read that has not begun yet; nil while only one is under way
	next map[string]*sharedRead[T]
	// key -> whether a goroutine reads
	reading map[string]bool
}

type sharedRead[T any] struct {
	done  chan struct{}
	value T
	err   error
}

func newShared[T any](what string, read func(ctx context.Context, key string) (T, error)) *shared[T] {
	return &shared[T]{what: what, read: read, next: map[string]*sharedRead[T]{}, reading: map[string]bool{}}
}

// get returns the outcome of a read that begins after this call, or ctx's error.
func (s *shared[T]) get(ctx context.Context, key string) (T, error) {
	read := s.join(ctx, key)
	select {
	case <-read.done:
		return read.value, read.err
	case <-ctx.Done():
		var zero T
		return zero, fmt.Errorf("waiting for %s %s: %w", s.what, key, context.Cause(ctx))
	}
}

func (s *shared[T]) join(ctx context.Context, key string) *sharedRead[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.next[key]
	if next == nil {
		next = &sharedRead[T]{done: make(chan struct{})}
		s.next[key] = next
	}
	if !s.reading[key] {
		s.reading[key] = true
		go s.work(context.WithoutCancel(ctx), key)
	}
	return next
}

// work reads until nobody has asked since the last read began.
func (s *shared[T]) work(ctx context.Context, key string) {
	for {
		read := s.begin(key)
		if read == nil {
			return
		}
		bounded, cancel := context.WithTimeout(ctx, readTimeout)
		read.value, read.err = s.read(bounded, key)
		cancel()
		close(read.done)
	}
}

func (s *shared[T]) begin(key string) *sharedRead[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	read := s.next[key]
	delete(s.next, key)
	if read == nil {
		delete(s.reading, key)
	}
	return read
}
