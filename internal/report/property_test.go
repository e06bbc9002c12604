// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

func anyAmounts() *rapid.Generator[map[corev1.ResourceName]int64] {
	return rapid.MapOf(rapid.SampledFrom([]corev1.ResourceName{"pods", "services", "requests.cpu"}), rapid.Int64Range(0, 1<<40))
}

func inMilli(amounts map[corev1.ResourceName]int64) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, amount := range amounts {
		list[name] = *resource.NewMilliQuantity(amount, resource.DecimalSI)
	}
	return list
}

func TestAvailableIsTheRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hard, used, reserved := anyAmounts().Draw(t, "hard"), anyAmounts().Draw(t, "used"), anyAmounts().Draw(t, "reserved")
		want := map[corev1.ResourceName]int64{}
		for name, limit := range hard {
			if _, counted := used[name]; counted {
				want[name] = max(0, limit-used[name]-reserved[name])
			}
		}
		got := Available(inMilli(hard), inMilli(used), inMilli(reserved))
		if diff := cmp.Diff(inMilli(want), got); diff != "" {
			t.Fatalf("available (-want,+got):\n%s", diff)
		}
	})
}
