// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestAStatusLagsUntilItIsWritten(t *testing.T) {
	quota := team("configmaps", "5")
	b := newBench(t, quota, registered())
	b.counts(t, quota, 3)
	b.StatusLag.Changed([]string{"team"})
	b.clock.Step(time.Second)
	for _, failure := range []error{errors.New("injected"), apierrors.NewConflict(schema.GroupResource{}, "team", nil)} {
		b.failure = failure
		_, _ = b.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "team"}})
		if lag := b.StatusLag.Of("team"); lag != time.Second {
			t.Errorf("after %v: lags by %s, want 1s", failure, lag)
		}
	}
	b.failure = nil
	b.reconcile(t)
	if lag := b.StatusLag.Of("team"); lag != 0 {
		t.Errorf("after the write: lags by %s", lag)
	}
}
