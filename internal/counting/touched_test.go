// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package counting

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/selection"
)

// A view from before the list would count the pod that is gone and not the one that came.
func TestAListOfOtherObjectsThatUseAsMuchIsAChange(t *testing.T) {
	selector, err := selection.Compile(quotav1.ClusterResourceQuotaSelector{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	count := New(evaluation.New(clocktesting.NewFakeClock(start), evaluation.ClaimSources{}), func([]string) {}, func([]string) {})
	count.ReplaceNamespaces([]NamespaceLabels{{Name: "a", Labels: map[string]string{"team": "red"}, Version: 1}}, 1, start)
	count.Define(Target{
		Quota:    evaluation.Quota{Name: "red", Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("5")}}},
		Selector: selector, Sources: map[corev1.ResourceName][]schema.GroupResource{"pods": {pods}},
	}, start)
	replace := func(version uint64, listed ...runtime.Object) uint64 {
		if err := count.Source(pods).Replace(listed, version, start); err != nil {
			t.Fatal(err)
		}
		touched := uint64(0)
		count.Read("red", func(view View) { touched = view.Touched()[pods] })
		return touched
	}
	x, y := podAt("a", "x", "uid-x", 2), podAt("a", "y", "uid-y", 3)
	replace(2, x)
	if touched := replace(4, y); touched != 4 {
		t.Errorf("the newest change is %d, want 4", touched)
	}
	if touched := replace(5, y); touched != 4 {
		t.Errorf("the newest change is %d after a list of the same, want 4", touched)
	}
}
