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

package usage

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/ledgerstore"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/metrics"
)

// A ledger that is counted anew takes no count that lacks what was stored by then.
func TestARecountDemandsWhatIsStoredNow(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	one := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}
	counted := ledger.State{
		Basis: ledger.Basis{Quota: "q", Generation: 1, Digest: "d"}, Used: one,
		Counted: map[schema.GroupResource]uint64{pods: 5, ledger.Namespaces: 3},
	}
	anew := counted
	anew.Used, anew.Counted = nil, map[schema.GroupResource]uint64{pods: 77, ledger.Namespaces: 88}
	for name, test := range map[string]struct {
		concerned types.UID
		failing   bool
		want      ledger.State
	}{
		"if it is concerned":             {concerned: "q", want: anew},
		"and not if another one is":      {concerned: "other", want: counted},
		"nor if nobody knows the newest": {concerned: "q", failing: true, want: counted},
	} {
		t.Run(name, func(t *testing.T) {
			store, recounts := newRecounts(t, counted, test.failing)
			err := recounts.Recount(t.Context(), func(quota types.UID) bool { return quota == test.concerned })
			if (err != nil) != test.failing {
				t.Errorf("error: got %v, want one: %t", err, test.failing)
			}
			stored, err := store.Load(t.Context(), "team")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want.Used, stored.State.Used); diff != "" {
				t.Errorf("used (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want.Counted, stored.State.Counted); diff != "" {
				t.Errorf("counted (-want,+got):\n%s", diff)
			}
		})
	}
}

func newRecounts(t *testing.T, state ledger.State, failing bool) (*ledgerstore.Store, *Recounts) {
	t.Helper()
	known := runtime.NewScheme()
	if err := quotav1.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	quota := &quotav1.ClusterResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team", UID: "q"}}
	quota.Spec.Quota.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("9")}
	server := fake.NewClientBuilder().WithScheme(known).WithObjects(quota).Build()
	b := &recoveryBench{t: t}
	store := ledgerstore.New(b.numbering(server))
	if _, err := store.Swap(t.Context(), "team", machine.Version{}, state); err != nil {
		t.Fatal(err)
	}
	options := driver.Options{Options: machine.Options{MaxWaiting: 10}, CallTimeout: time.Second, EditTimeout: time.Second}
	group := driver.New(t.Context(), clock.RealClock{}, store, metrics.New(prometheus.NewRegistry()), options)
	newest := func(_ context.Context, resource schema.GroupResource) (uint64, error) {
		switch {
		case failing:
			return 0, errors.New("no answer")
		case resource == ledger.Namespaces:
			return 88, nil
		default:
			return 77, nil
		}
	}
	return store, NewRecounts(server, group, evaluation.New(clock.RealClock{}, evaluation.ClaimSources{}), newest)
}
