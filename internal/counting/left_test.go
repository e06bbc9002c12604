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

package counting

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/selection"
)

// An object that was admitted under a quota and stored just as its namespace left is never
// counted, and its reservation must not wait for something else to happen.
func TestTellsOfObjectsInNamespacesThatLeft(t *testing.T) {
	selector, err := selection.Compile(quotav1.ClusterResourceQuotaSelector{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	count := New(evaluation.New(clocktesting.NewFakeClock(start), evaluation.ClaimSources{}), func([]string) { told++ }, func([]string) {})
	count.ReplaceNamespaces([]NamespaceLabels{{Name: "a", Labels: map[string]string{"team": "red"}, Version: 1}}, 1, start)
	count.Define(Definition{
		Quota:    evaluation.Quota{Name: "red", Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("5")}}},
		Selector: selector, Sources: map[corev1.ResourceName][]schema.GroupResource{"pods": {pods}},
	}, start)
	count.SetNamespace("a", nil, nil, 2, start)
	set := func(name string) bool {
		before := told
		if err := count.Source(pods).Set(podAt("a", name, "uid", 3), start); err != nil {
			t.Fatal(err)
		}
		return told > before
	}
	if !set("x") {
		t.Error("the quota that the namespace left was not told")
	}
	for minute := range 5 {
		count.Advance(start.Add(time.Duration(minute)*time.Minute), 3*time.Minute)
	}
	if set("y") {
		t.Error("the quota was told after the namespace had left long ago")
	}
}
