// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	upstreamquota "k8s.io/apiserver/pkg/quota/v1"
	"pgregory.net/rapid"
)

func TestUsageAddsUpToWhatKubernetesCounts(t *testing.T) {
	outcomes := tally{}
	rapid.Check(t, func(t *rapid.T) {
		sources := anySources().Draw(t, "sources")
		evaluators := New(clockAt{now: testNow()}, sources)
		objects := anyTypedObjects(8).Draw(t, "objects")
		now := testNow().Add(time.Duration(rapid.IntRange(-60, 120).Draw(t, "seconds later")) * time.Second)
		registry := upstream(clockAt{now: now}, sources, objects)
		for _, quota := range rapid.SliceOfN(anyQuota(limitableNames()), 10, 10).Draw(t, "quotas") {
			want, err := upstreamquota.CalculateUsage("team-a", quota.Spec.Scopes, quota.Spec.Hard, registry, quota.Spec.ScopeSelector)
			if err != nil {
				t.Fatal(err)
			}
			want = upstreamquota.RemoveZeros(want)
			if got := usageOfAll(t, evaluators, objects, quota, now); !upstreamquota.Equals(want, got) {
				t.Fatalf("want %v, got %v", want, got)
			}
			outcomes[map[bool]string{true: "nothing used", false: "something used"}[len(want) == 0]]++
		}
	})
	outcomes.require(t, 100, "nothing used", "something used")
}

func usageOfAll(t *rapid.T, evaluators *Evaluators, objects []typedObject, quota Quota, now time.Time) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, typed := range objects {
		footprint, err := evaluators.Footprint(typed.resource, typed.object)
		if err != nil {
			t.Fatal(err)
		}
		usage, err := evaluators.Usage(typed.resource, footprint, quota, now)
		if err != nil {
			t.Fatal(err)
		}
		sum = upstreamquota.Add(sum, usage)
	}
	return sum
}
