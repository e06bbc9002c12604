// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package counting

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// sizes are how many pods live in the namespace where something changes.
var sizes = []int{10, 1000, 100000}

// benchmarkCount counts pods by five names in all namespaces of one team.
func benchmarkCount(b *testing.B, namespaces int) *Count {
	b.Helper()
	count := newCount()
	list := make([]NamespaceLabels, 0, namespaces)
	for i := range namespaces {
		list = append(list, NamespaceLabels{Name: fmt.Sprint("ns", i), Labels: map[string]string{"team": "red"}})
	}
	count.ReplaceNamespaces(list, 1, start)
	hard, sources := corev1.ResourceList{}, map[corev1.ResourceName][]schema.GroupResource{}
	for _, name := range []corev1.ResourceName{"pods", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"} {
		hard[name], sources[name] = resource.MustParse("1000000"), []schema.GroupResource{pods}
	}
	target := targetFor(b, "red")
	target.Quota.Spec.Hard, target.Sources = hard, sources
	count.Define(target, start)
	return count
}

// benchmarkPod is one of a few shapes, as the pods of a few Deployments.
func benchmarkPod(namespace string, i int) *corev1.Pod {
	pod := podAt(namespace, fmt.Sprintf("checkout-5d4f8c7b9d-%06d", i), types.UID(fmt.Sprintf("8f14e45f-ceea-467f-a8d5-%012d", i)), 10+i)
	amounts := corev1.ResourceList{
		"cpu": *resource.NewMilliQuantity(int64(50+10*(i%20)), resource.DecimalSI), "memory": resource.MustParse("128Mi"),
	}
	pod.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: amounts, Limits: amounts}}}
	return pod
}

// fill puts so many pods into each of the first namespaces.
func fill(b *testing.B, count *Count, namespaces, podsEach int) {
	b.Helper()
	for n := range namespaces {
		for i := range podsEach {
			if err := count.Source(pods).Set(benchmarkPod(fmt.Sprint("ns", n), i), start); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// The cost of one event must not depend on how many objects its namespace holds.
func BenchmarkSet(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("records=%d", size), func(b *testing.B) {
			count := benchmarkCount(b, 1)
			fill(b, count, 1, size)
			source := count.Source(pods)
			shapes := []*corev1.Pod{benchmarkPod("ns0", 0), benchmarkPod("ns0", 1)}
			shapes[1].Name, shapes[1].UID = shapes[0].Name, shapes[0].UID
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; b.Loop(); i++ {
				if err := source.Set(shapes[i%2], start); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Memory is the size of a record, with everything that leads to it, and of the
// memory of a deleted object.
func BenchmarkMemory(b *testing.B) {
	const namespaces, podsEach = 500, 100
	b.Run("counted", func(b *testing.B) {
		for b.Loop() {
			count := benchmarkCount(b, namespaces)
			before := heap()
			fill(b, count, namespaces, podsEach)
			b.ReportMetric(float64(heap()-before)/(namespaces*podsEach), "B/pod")
			runtime.KeepAlive(count)
		}
	})
	b.Run("gone", func(b *testing.B) {
		for b.Loop() {
			count := benchmarkCount(b, namespaces)
			before := heap()
			drain(b, count, namespaces*podsEach)
			b.ReportMetric(float64(heap()-before)/(namespaces*podsEach), "B/pod")
			runtime.KeepAlive(count)
		}
	})
}

// drain deletes so many pods.
func drain(b *testing.B, count *Count, number int) {
	b.Helper()
	for i := range number {
		if err := count.Source(pods).Delete(benchmarkPod("ns0", i), start); err != nil {
			b.Fatal(err)
		}
	}
}

// A leader that begins defines every quota, and each looks at all namespaces: here at 20,000, of 1,000 teams.
func BenchmarkDefine(b *testing.B) {
	const namespaces, teams = 20000, 1000
	count := newCount()
	list := make([]NamespaceLabels, 0, namespaces)
	for i := range namespaces {
		list = append(list, NamespaceLabels{Name: fmt.Sprint("ns", i), Labels: map[string]string{"team": fmt.Sprint(i % teams)}})
	}
	count.ReplaceNamespaces(list, 1, start)
	for i := 0; b.Loop(); i++ {
		target := targetFor(b, fmt.Sprint(i%teams))
		target.Quota.Name = fmt.Sprint(i)
		count.Define(target, start)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // The first one releases the targets of weak pointers.
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// The work that is left for a list of 50,000 with the lock held: for the first
// one, and for one with nothing new after a gap.
func BenchmarkReplace(b *testing.B) {
	const namespaces, podsEach = 500, 100
	listed := recordsOf(b, namespaces, podsEach)
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			source := benchmarkCount(b, namespaces).Source(pods)
			b.StartTimer()
			source.lockedReplace(listed, start)
		}
	})
	b.Run("again", func(b *testing.B) {
		source := benchmarkCount(b, namespaces).Source(pods)
		for b.Loop() {
			source.lockedReplace(listed, start)
		}
	})
}

func recordsOf(b *testing.B, namespaces, podsEach int) records {
	b.Helper()
	count := benchmarkCount(b, namespaces)
	fill(b, count, namespaces, podsEach)
	return count.Source(pods).objects
}

// One quota over all 50,000 pods, which is the worst.
func BenchmarkAudit(b *testing.B) {
	count := benchmarkCount(b, 500)
	fill(b, count, 500, 100)
	b.ResetTimer()
	for b.Loop() {
		if drift := count.Audit("red", start); len(drift) > 0 {
			b.Fatal(drift)
		}
	}
}
