// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package counting

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// leavingPod is a pod that counts for a minute after its deletion has been seen, whichever time the API server wrote in
// it.
func leavingPod(name string) *corev1.Pod {
	pod := podAt("a", name, types.UID("1"+name), 20)
	leaves, grace := metav1.NewTime(start), int64(30)
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &leaves, &grace
	return pod
}

// An event is given its time before it waits for the lock: meanwhile a look at a
// later time may have come.
func TestAnEventMayBeOlderThanTheLastLookAtTheTime(t *testing.T) {
	count := redQuota(t)
	source := count.Source(pods)
	used := func() int64 { pods := totalOf(count, "red")["pods"]; return pods.Value() }
	if err := source.Set(leavingPod("x"), start); err != nil {
		t.Fatal(err)
	}
	count.Advance(start.Add(2*time.Minute), time.Hour)
	if used() != 0 {
		t.Fatalf("want a pod whose grace is over not to count, got %d", used())
	}
	if err := source.Set(leavingPod("x"), start.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	requireNoDrift(t, count, start.Add(time.Second))
	count.Advance(start.Add(2*time.Minute), time.Hour)
	if err := source.Delete(leavingPod("x"), start.Add(2*time.Minute)); err != nil {
		t.Fatal(err)
	}
	if used() != 0 {
		t.Errorf("want nothing in use once it is gone, got %d", used())
	}
}

// Only records that are yet to change are looked at each second, and only as
// long.
func TestOnlyPodsThatAreGoingToChangeAge(t *testing.T) {
	count := redQuota(t)
	source := count.Source(pods)
	late := start.Add(2 * time.Minute)
	for _, step := range []struct {
		does  string
		event func() error
		aging int
	}{
		{"a pod that stays", func() error { return source.Set(podAt("a", "stays", "s", 20), start) }, 0},
		{"a pod that leaves", func() error { return source.Set(leavingPod("x"), start) }, 1},
		{"one more", func() error { return source.Set(leavingPod("y"), start) }, 2},
		{"one of them is gone", func() error { return source.Delete(leavingPod("y"), start) }, 1},
		{"a list of the same", func() error { return source.Replace([]runtime.Object{leavingPod("x")}, 30, start) }, 1},
		{"time passes", func() error { count.Advance(late, time.Hour); return nil }, 0},
		{"an event of it after that", func() error { return source.Set(leavingPod("x"), late) }, 0},
		{"a list after that", func() error { return source.Replace([]runtime.Object{leavingPod("x")}, 40, late) }, 0},
	} {
		if err := step.event(); err != nil {
			t.Fatal(err)
		}
		if got := len(source.aging); got != step.aging {
			t.Errorf("%s: want %d to look at, got %d", step.does, step.aging, got)
		}
	}
}

func TestDeparturesAreRememberedForAWhile(t *testing.T) {
	gone := newDepartures()
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	gone.add("a", at(1))
	gone.add("b", at(2))
	gone.add("a", at(3)) // seen to be gone once more
	for _, step := range []struct {
		before int
		want   string
	}{{1, "[a b]"}, {2, "[a b]"}, {3, "[a]"}, {4, "[]"}, {5, "[]"}} {
		gone.forget(at(step.before))
		remembered := []types.UID{}
		for _, uid := range []types.UID{"a", "b", "c"} {
			if gone.has(uid) {
				remembered = append(remembered, uid)
			}
		}
		if got := fmt.Sprint(remembered); got != step.want {
			t.Errorf("without those before %d: want %s, got %s", step.before, step.want, got)
		}
	}
	if len(gone.order) > 0 || len(gone.since) > 0 {
		t.Errorf("want nothing left, got %v", gone)
	}
}

// Departures are forgotten as fast as they come: memory is bounded by time.
func TestManyDeparturesTakeNoMoreThanTheirTime(t *testing.T) {
	count := redQuota(t)
	source := count.Source(pods)
	const remember, each = 10, 20
	for second := range 10 * remember {
		now := start.Add(time.Duration(second) * time.Second)
		for i := range each {
			pod := podAt("a", "x", types.UID(fmt.Sprint(second, "-", i)), 20)
			if err := source.Delete(pod, now); err != nil {
				t.Fatal(err)
			}
		}
		count.Advance(now, remember*time.Second)
		if since, order := len(source.gone.since), cap(source.gone.order); since > (remember+1)*each || order > 4*(remember+1)*each {
			t.Fatalf("second %d: remembers %d in space for %d", second, since, order)
		}
	}
}
