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

// countedRed counts the pods of the namespace a for the quota red. touched returns the newest version of a pod
// that changed what is counted.
func countedRed(t *testing.T) (source *Source, touched func() uint64) {
	t.Helper()
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
	return count.Source(pods), func() uint64 {
		touched := uint64(0)
		count.Read("red", func(view View) { touched = view.Touched()[pods] })
		return touched
	}
}

// A view from before the list would count the pod that is gone and not the one that came.
func TestAListOfOtherObjectsThatUseAsMuchIsAChange(t *testing.T) {
	source, touched := countedRed(t)
	replace := func(version uint64, listed ...runtime.Object) uint64 {
		if err := source.Replace(listed, version, start); err != nil {
			t.Fatal(err)
		}
		return touched()
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

// The ledger would be written again for it, after each pod that ends.
func TestTheDeletionOfAPodThatUsesNothingAnyMoreIsNoChange(t *testing.T) {
	source, touched := countedRed(t)
	ended, gone := podAt("a", "x", "uid-x", 3), podAt("a", "x", "uid-x", 4)
	ended.Status.Phase, gone.Status.Phase = corev1.PodSucceeded, corev1.PodSucceeded
	for _, step := range []struct {
		happens string
		then    func() error
		touched uint64
	}{
		{"a pod is created", func() error { return source.Set(podAt("a", "x", "uid-x", 2), start) }, 2},
		{"it ends", func() error { return source.Set(ended, start) }, 3},
		{"it is deleted", func() error { return source.Delete(gone, start) }, 3},
	} {
		if err := step.then(); err != nil {
			t.Fatal(err)
		}
		if got := touched(); got != step.touched {
			t.Errorf("%s: the newest change is %d, want %d", step.happens, got, step.touched)
		}
	}
}
