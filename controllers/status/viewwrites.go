// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/report"
)

// writesAtOnce bounds the writes of one round that are under way together.
const writesAtOnce = 4

const (
	// turns bounds the writes of all rounds that are under way together. With sixteen at once, a leader that began with
	// 500 quotas over 10,000 namespaces took a third longer to count them.
	turns = 2
	// slow is when a write's turn ends that is still under way: a namespace in which something delays writes keeps no other
	// waiting for longer.
	slow = 50 * time.Millisecond
)

// writeTimeout bounds one write, so that a write without an answer leaves time
// for the rest of its round.
const writeTimeout = 10 * time.Second

func (c *ViewController) remove(ctx context.Context, views []*quotav1.LocalResourceQuota) error {
	return each(views, c.inTurn(ctx, func(view *quotav1.LocalResourceQuota) error {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		err := c.Client.Delete(ctx, view, client.Preconditions{UID: &view.UID, ResourceVersion: &view.ResourceVersion})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil // its change meanwhile asks for another round, or another replica leads now
		}
		return err //nolint:wrapcheck // the caller names the action
	}))
}

// inTurn does a write in its turn among those of all quotas, unless ctx ends before.
func (c *ViewController) inTurn(
	ctx context.Context, write func(*quotav1.LocalResourceQuota) error,
) func(*quotav1.LocalResourceQuota) error {
	return func(view *quotav1.LocalResourceQuota) error {
		select {
		case c.turns <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		end := sync.OnceFunc(func() { <-c.turns })
		defer c.Clock.AfterFunc(slow, end).Stop()
		defer end()
		return write(view)
	}
}

// each does something with every view, also where it fails for others: one
// namespace must not keep the rest from their views.
func each(views []*quotav1.LocalResourceQuota, do func(*quotav1.LocalResourceQuota) error) error {
	failures := make([]error, len(views))
	var group errgroup.Group
	group.SetLimit(writesAtOnce)
	for i, view := range views {
		group.Go(func() error {
			failures[i] = do(view)
			return nil
		})
	}
	_ = group.Wait()
	return errors.Join(failures...)
}

// write stores a view, and reports the resources whose level has risen by it.
func (c *ViewController) write(ctx context.Context, view *quotav1.LocalResourceQuota, risen []corev1.ResourceName) error {
	stored, err := c.store(ctx, view)
	if stored {
		c.tell(view, risen)
	}
	return err
}

// tell reports to the owner of the namespace the levels that a view that was just
// written has reached. They are in the view now: nothing else reports them.
func (c *ViewController) tell(view *quotav1.LocalResourceQuota, risen []corev1.ResourceName) {
	for _, name := range risen {
		report.LevelReachedInView(view, report.UseOf(name, view.Status.Levels[name], view.Status.Total)).Record(c.Recorder)
	}
}

// store reports whether the view is stored.
func (c *ViewController) store(ctx context.Context, view *quotav1.LocalResourceQuota) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if view.ResourceVersion != "" {
		err := c.Client.Update(ctx, view)
		// Its change or deletion meanwhile asks for another round.
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return false, nil
		}
		return err == nil, err //nolint:wrapcheck // the error names the view
	}
	err := c.Client.Create(ctx, view)
	// A namespace that is going takes no new objects, and needs none.
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("creating the view in namespace %s: %w", view.Namespace, err)
	}
	return true, nil
}
