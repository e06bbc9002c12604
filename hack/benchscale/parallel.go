// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
	"sync/atomic"
)

// workers is how many clients create objects at a time.
const workers = 16

// inParallel does something for each number below count, and returns the first
// error, after which nothing more is begun.
func inParallel(ctx context.Context, count int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var begun atomic.Int64
	var running sync.WaitGroup
	for range min(workers, count) {
		running.Go(func() {
			for i := int(begun.Add(1)) - 1; i < count && ctx.Err() == nil; i = int(begun.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	running.Wait()
	return context.Cause(ctx)
}

// together does all of these at the same time.
func together(ctx context.Context, tasks ...func(ctx context.Context) error) error {
	return inParallel(ctx, len(tasks), func(ctx context.Context, i int) error { return tasks[i](ctx) })
}
