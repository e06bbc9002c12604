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

func TestWhatIsAvailableIsWhatIsLeft(t *testing.T) {
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
