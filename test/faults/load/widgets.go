// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// widgetNames is how many names a client uses again and again.
const widgetNames = 4

// widgets is a client that creates and deletes objects of a custom resource, by the
// version that is served.
type widgets struct {
	*worker
	kind  func() schema.GroupVersionKind
	slots [widgetNames]slot
}

func newWidgets(w *worker, kind func() schema.GroupVersionKind) stepper {
	return &widgets{worker: w, kind: kind}
}

func (c *widgets) step(ctx context.Context) {
	i := c.random.IntN(widgetNames)
	slot, object := &c.slots[i], builders.Custom(c.kind(), c.namespace, fmt.Sprintf("%s-%d", c.name, i))
	if slot.there {
		slot.learnIf(c.call(ctx, "delete widget", func(ctx context.Context) error {
			return c.api.Delete(ctx, object)
		}, isGone), false)
		return
	}
	slot.learnIf(c.write(ctx, "create widget", object, func(ctx context.Context) error {
		return c.api.Create(ctx, object)
	}, existing(true), isGone), true)
}

// learnIf is learn where a 404 may be about the version, and tells nothing.
func (s *slot) learnIf(outcome Outcome, there bool) {
	if outcome == Expected {
		s.there = there
		return
	}
	s.learn(outcome, there)
}

// isGone tells whether the object or its version may not be there any more.
func isGone(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}
