// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package counting

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// Each source is fed by its own watch, while quotas come and go, people read,
// and housekeeping is done. For the race detector, and for the figures.
func TestManyUseACountAtTheSameTime(t *testing.T) {
	const rounds = 300
	count := redQuota(t)
	target := targetOf(count, "red")
	var users sync.WaitGroup
	for _, use := range []func(round int){
		func(round int) { feedPods(t, count, round) },
		func(round int) { feedConfigMaps(t, count, round) },
		func(round int) { relabel(count, round) },
		func(round int) { comeAndGo(count, target, round) },
		func(int) { requireSumOfSlices(t, count) },
		func(round int) { count.Advance(start.Add(time.Duration(round)*time.Second), time.Minute) },
		func(round int) { requireNoDrift(t, count, start.Add(time.Duration(round)*time.Second)) },
	} {
		users.Go(func() {
			for round := range rounds {
				use(round)
			}
		})
	}
	users.Wait()
	requireSumOfSlices(t, count)
	requireNoDrift(t, count, start.Add(time.Hour))
}

func name(round int) string { return strconv.Itoa(round % 7) }

func uidOf(round int) types.UID { return types.UID(fmt.Sprint("uid", round)) }

func feedPods(t *testing.T, count *Count, round int) {
	t.Helper()
	pod := podAt([]string{"a", "b"}[round%2], name(round), uidOf(round), 100+round)
	if round%5 == 0 {
		leaves, grace := metav1.NewTime(start), int64(round)
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &leaves, &grace
	}
	var err error
	switch {
	case round%11 == 0:
		err = count.Source(pods).Replace([]runtime.Object{pod}, uint64(100+round), start)
	case round%3 == 0:
		err = count.Source(pods).Delete(pod, start)
	default:
		err = count.Source(pods).Set(pod, start)
	}
	if err != nil {
		t.Error(err)
	}
}

func feedConfigMaps(t *testing.T, count *Count, round int) {
	t.Helper()
	object := &metav1.PartialObjectMetadata{ObjectMeta: podAt("a", name(round), uidOf(round), round).ObjectMeta}
	if err := count.Source(configMaps).Set(object, start); err != nil {
		t.Error(err)
	}
	if round%50 == 0 {
		count.DropSource(configMaps)
	}
}

func relabel(count *Count, round int) {
	count.SetNamespace("b", map[string]string{"team": []string{"red", "blue"}[round%2]}, nil, uint64(100+round), start)
	if round%9 == 0 {
		count.DeleteNamespace("b", uint64(100+round))
	}
}

func comeAndGo(count *Count, target Target, round int) {
	target.Quota.Name = []string{"red", "another"}[round%2]
	target.Generation = int64(round)
	count.Define(target, start)
	count.Forget("another")
}

func requireSumOfSlices(t *testing.T, count *Count) {
	t.Helper()
	for _, name := range count.Quotas() {
		count.Read(name, func(view View) {
			sum := zeros(view.Target().Quota.Spec.Hard)
			for _, used := range view.Slices() {
				sum = quota.Add(sum, used)
			}
			if !quota.Equals(sum, view.Total()) {
				t.Errorf("quota %s: the slices add up to %v, the total is %v", name, sum, view.Total())
			}
		})
	}
}

func requireNoDrift(t *testing.T, count *Count, now time.Time) {
	t.Helper()
	for _, name := range count.Quotas() {
		if drift := count.Audit(name, now); len(drift) > 0 {
			t.Errorf("quota %s: an audit found a drift of %v", name, drift)
		}
	}
}
