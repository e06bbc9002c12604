// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// BenchmarkScrape gathers 50,000 series of namespaces: 10 quotas of 5 resources over
// 1000 namespaces.
func BenchmarkScrape(b *testing.B) {
	used := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{"pods", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"} {
		used[name] = resource.MustParse("1500m")
	}
	all := make([]Figures, 10)
	for i := range all {
		all[i] = Figures{Quota: fmt.Sprintf("quota-%d", i), Hard: used, Used: used, Namespaces: map[string]corev1.ResourceList{}}
		for n := range 1000 {
			all[i].Namespaces[fmt.Sprintf("namespace-%d", n)] = used
		}
	}
	registry := prometheus.NewRegistry()
	New(registry).Follow(elected(true), func() []Figures { return all })
	b.ReportAllocs()
	for b.Loop() {
		if _, err := registry.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAnswered(b *testing.B) {
	m := New(prometheus.NewRegistry())
	b.ReportAllocs()
	for b.Loop() {
		m.Answered(outcomes.Allowed, 1)
	}
}
