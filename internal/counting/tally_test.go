// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package counting

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// An object that can't be matched with a quota counts in full, because it must
// not make room, and it is reported once each time that the quota is defined.
func TestAnUnmatchableObjectCountsInFull(t *testing.T) {
	count := redQuota(t)
	var told []string
	count.OnUnmatched(func(quota string, resource schema.GroupResource, err error) {
		if !strings.Contains(err.Error(), `"Near" is not a valid scope selector operator`) {
			t.Errorf("got %v", err)
		}
		told = append(told, fmt.Sprintf("%s of %s", resource, quota))
	})
	bad := count.tallies["red"].target
	bad.Quota.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
		{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: "Near", Values: []string{"x"}},
	}}
	source := count.Source(pods)
	expect := func(pods int64, wantTold ...string) {
		t.Helper()
		used := totalOf(count, "red")["pods"]
		if used.Value() != pods {
			t.Errorf("want %d pods, got %s", pods, used.String())
		}
		if diff := cmp.Diff(wantTold, told); diff != "" {
			t.Errorf("told (-want,+got):\n%s", diff)
		}
		requireSumOfSlices(t, count)
		requireNoDrift(t, count, start)
	}
	set := func(name string) {
		t.Helper()
		if err := source.Set(podAt("a", name, types.UID("uid-"+name), 20), start); err != nil {
			t.Fatal(err)
		}
	}

	set("x")
	expect(1)
	count.Define(bad, start)
	expect(1, "pods of red")
	set("y")
	set("z")
	expect(3, "pods of red")
	if err := source.Delete(podAt("a", "y", "uid-y", 21), start); err != nil {
		t.Fatal(err)
	}
	expect(2, "pods of red")
	count.Define(bad, start)
	expect(2, "pods of red", "pods of red")
}
