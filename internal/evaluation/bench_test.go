// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// benchmarkQuotas are as many quotas as cover a namespace in a busy cluster.
func benchmarkQuotas(count int) []Quota {
	quotas := make([]Quota, 0, count)
	for i := range count {
		quotas = append(quotas, quotaOf(fmt.Sprintf("quota-%d", i),
			"pods", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory", "count/pods"))
	}
	return quotas
}

func BenchmarkChargesOfPod(b *testing.B) {
	for _, count := range []int{1, 3} {
		b.Run(fmt.Sprintf("quotas=%d", count), func(b *testing.B) {
			evaluators := New(clockAt{now: time.Unix(1000, 0)}, ClaimSources{})
			request := creation(pods(), typicalPod())
			quotas := benchmarkQuotas(count)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := evaluators.Charges(request, quotas); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFootprintOfPod(b *testing.B) {
	evaluators := New(clockAt{now: time.Unix(1000, 0)}, ClaimSources{})
	pod := typicalPod()
	// While one footprint is kept, the others share its usage, as in a cluster.
	kept, err := evaluators.Footprint(pods(), pod)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		footprint, err := evaluators.Footprint(pods(), pod)
		if err != nil || !footprint.Equal(kept) {
			b.Fatal("not the same footprint", err)
		}
	}
}

func BenchmarkUsageOfPod(b *testing.B) {
	for name, scopes := range map[string][]corev1.ResourceQuotaScope{
		"plain":  nil,
		"scoped": {corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeNotBestEffort},
	} {
		b.Run(name, func(b *testing.B) {
			evaluators := New(clockAt{now: time.Unix(1000, 0)}, ClaimSources{})
			footprint, err := evaluators.Footprint(pods(), typicalPod())
			if err != nil {
				b.Fatal(err)
			}
			quota := benchmarkQuotas(1)[0]
			quota.Spec.Scopes = scopes
			b.ReportAllocs()
			for b.Loop() {
				usage, err := evaluators.Usage(pods(), footprint, quota, time.Unix(1000, 0))
				if err != nil || len(usage) != 6 {
					b.Fatal("not the usage of a pod", usage, err)
				}
			}
		})
	}
}
