// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
)

// workers is how many objects are created or deleted at a time.
const workers = 16

// inParallel does something for each number below count, and returns the first
// error, after which nothing more is begun.
func inParallel(ctx context.Context, count int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for i := range count {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return do(ctx, i)
		})
	}
	return group.Wait()
}

// together does all of these at the same time.
func together(ctx context.Context, tasks ...func(ctx context.Context) error) error {
	return inParallel(ctx, len(tasks), func(ctx context.Context, i int) error { return tasks[i](ctx) })
}

// until polls until done says so or settleTimeout has passed.
func until(ctx context.Context, goal string, done func(context.Context) (bool, error)) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, settleTimeout, true, func(ctx context.Context) (bool, error) {
		ok, err := done(ctx)
		last = err
		return ok && err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w; last: %w", goal, err, last)
	}
	return nil
}

// pause returns after a while, or with an error once ctx ends.
func pause(ctx context.Context, duration time.Duration) error {
	if duration <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
