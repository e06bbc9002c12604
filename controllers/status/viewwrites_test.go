// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

func TestOneNamespaceKeepsNoOtherFromItsView(t *testing.T) {
	views := viewsNamed("good", 3*writesAtOnce)
	views[0].Name = "bad"
	refused := errors.New("refused")
	var mu sync.Mutex
	done := map[string]int{}
	err := each(views, func(view *quotav1.LocalResourceQuota) error {
		mu.Lock()
		defer mu.Unlock()
		done[view.Name]++
		if view.Name == "bad" {
			return refused
		}
		return nil
	})
	if diff := cmp.Diff(map[string]int{"bad": 1, "good": 3*writesAtOnce - 1}, done); diff != "" {
		t.Errorf("views that were written (-want,+got):\n%s", diff)
	}
	if !errors.Is(err, refused) {
		t.Errorf("want the failure told, got %v", err)
	}
}
