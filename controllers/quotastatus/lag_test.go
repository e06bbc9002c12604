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

package quotastatus

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
	b.lag.Changed([]string{"team"})
	b.clock.Step(time.Second)
	for _, failure := range []error{errors.New("injected"), apierrors.NewConflict(schema.GroupResource{}, "team", nil)} {
		b.failure = failure
		_, _ = b.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "team"}})
		if lag := b.lag.Of("team"); lag != time.Second {
			t.Errorf("after %v: lags by %s, want 1s", failure, lag)
		}
	}
	b.failure = nil
	b.reconcile(t)
	if lag := b.lag.Of("team"); lag != 0 {
		t.Errorf("after the write: lags by %s", lag)
	}
}
