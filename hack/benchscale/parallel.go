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
