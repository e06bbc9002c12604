// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// background runs work that may outlive a reconcile: one run of each name at a
// time.
type background struct {
	// ctx ends all runs.
	ctx   context.Context //nolint:containedctx // the process's, for runs that outlive a reconcile
	clock clock.Clock

	mu sync.Mutex // guards running
	// names of the current runs
	running map[string]bool
}

func newBackground(ctx context.Context, clock clock.Clock) *background {
	return &background{ctx: ctx, clock: clock, running: map[string]bool{}}
}

// begin begins a run, unless one of that name is under way. When it has ended, it calls then.
func (b *background) begin(name string, run, then func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running[name] || b.ctx.Err() != nil {
		return
	}
	b.running[name] = true
	go func() {
		run()
		b.mu.Lock()
		delete(b.running, name)
		b.mu.Unlock()
		then()
	}()
}

// rest waits within a run.
func (b *background) rest(wait time.Duration) {
	select {
	case <-b.clock.After(wait):
	case <-b.ctx.Done():
	}
}

func nothing() {}
