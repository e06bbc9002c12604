// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// round is calls that are made at the same time.
type round struct {
	client client.Reader
	calls  []func(context.Context) error

	// mu guards refused.
	mu      sync.Mutex
	refused []string
}

func (r *Reader) newRound() *round { return &round{client: r.client} }

func (r *round) call(call func(context.Context) error) { r.calls = append(r.calls, call) }

// list lists a resource. If the user may not read it, wait goes on, and forbidden has it. The result is set if
// the cluster doesn't serve it.
func (r *round) list(resource string, into client.ObjectList, options ...client.ListOption) (notServed *bool) {
	notServed = new(bool)
	r.call(func(ctx context.Context) error {
		err := r.client.List(ctx, into, options...)
		switch {
		case err == nil:
			return nil
		case isNotServed(err):
			*notServed = true
			return nil
		case apierrors.IsForbidden(err):
			r.forbid(resource)
			return nil
		}
		return fmt.Errorf("reading %s: %w", resource, err)
	})
	return notServed
}

// forbid notes that the user may not read a resource.
func (r *round) forbid(resource string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused = append(r.refused, resource)
}

// wait makes the calls, and returns the first error.
func (r *round) wait(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, call := range r.calls {
		group.Go(func() error { return call(ctx) })
	}
	return group.Wait() //nolint:wrapcheck // each call wraps its own
}

// forbidden returns the resources that the user may not read, sorted.
func (r *round) forbidden() []string { return slices.Sorted(slices.Values(r.refused)) }
