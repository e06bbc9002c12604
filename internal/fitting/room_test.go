// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package fitting

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"pgregory.net/rapid"

	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
)

func roomOf(t require, demand Demand, limit Limit) Room {
	t.Helper()
	room, err := NewFitter(evaluation.New(clock.RealClock{}, evaluation.ClaimSources{}), asItIs).Room(demand, limit)
	if err != nil {
		t.Fatal(err)
	}
	return room
}

func TestRoom(t *testing.T) {
	limited := func(hard, left corev1.ResourceList) Limit {
		return Limit{Name: "team", Namespaces: []string{"a"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}, Left: left}
	}
	claim := Item{Resource: claimResource, Kind: "PersistentVolumeClaim", Object: &corev1.PersistentVolumeClaim{}, Count: 6, EachPod: true}
	there := func(demand Demand, present int64, old ...Group) Demand {
		demand.Pods.Present, demand.Pods.Old = present, old
		return demand
	}
	for name, test := range map[string]struct {
		demand Demand
		limit  Limit
		want   Room
	}{
		"some fit": {
			demand: workload("a", "web", 8, "cpu", "280m"), limit: limited(list("requests.cpu", "4"), list("requests.cpu", "840m")),
			want: Room{Wanted: 8, Fit: 3},
		},
		"all fit": {demand: workload("a", "web", 8), limit: limited(list("pods", "9"), list("pods", "8")), want: Room{Wanted: 8, Fit: 8}},
		"those that are there do": {
			demand: there(workload("a", "web", 8), 3), limit: limited(list("pods", "9"), list("pods", "-2")), want: Room{Wanted: 8, Fit: 3},
		},
		"so do those that are replaced": {
			demand: there(workload("a", "web", 8, "cpu", "1"), 1, Group{Items: []Item{podOf("a", "cpu", "1")}, Count: 2}),
			limit:  limited(list("requests.cpu", "9"), list("requests.cpu", "1")), want: Room{Wanted: 8, Fit: 4},
		},
		"a quota over its limit lets none of another size follow": {
			demand: there(workload("a", "web", 8, "cpu", "1"), 0, Group{Items: []Item{podOf("a", "cpu", "2")}, Count: 3}),
			limit:  limited(list("requests.cpu", "9"), list("requests.cpu", "-2")), want: Room{Wanted: 8, Fit: 4},
		},
		"never more than the limit": {
			demand: workload("a", "web", 8, "cpu", "1"), limit: limited(list("requests.cpu", "7", "pods", "8"), list("requests.cpu", "7", "pods", "8")),
			want: Room{Wanted: 8, Fit: 7, Never: list("requests.cpu", "8")},
		},
		"claims of each pod count": {
			demand: Demand{Namespace: "a", Items: []Item{claim}, Pods: &Pods{New: []Item{podOf("a")}, Wanted: 8, Present: 2}},
			limit:  limited(list("persistentvolumeclaims", "8"), list("persistentvolumeclaims", "3")), want: Room{Wanted: 8, Fit: 5},
		},
		"what isn't counted limits nothing": {
			demand: workload("a", "web", 8), limit: limited(list("pods", "9"), nil), want: Room{Wanted: 8, Fit: 8},
		},
		"a run of a cron job": {
			demand: Demand{Namespace: "a", Items: []Item{ended("a", 4)}}, limit: limited(list("count/pods", "3"), list("count/pods", "3")),
			want: Room{Never: list("count/pods", "4")},
		},
		"as many as can be": {
			demand: workload("a", "web", 1<<31-1, "cpu", "9223372036854775807"), limit: limited(list("pods", "9"), list("pods", "9")),
			want: Room{Wanted: 1<<31 - 1, Fit: 9, Never: list("pods", "2147483647")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.want.Never == nil {
				test.want.Never = corev1.ResourceList{}
			}
			if diff := cmp.Diff(test.want, roomOf(t, test.demand, test.limit)); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

// So many pods fit as Room says, and no more.
func TestSoManyFitAndNoMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		demand, limit := drawDemands(t)[0], drawLimits(t)[0]
		demand.Namespace = limit.Namespaces[0]
		room := roomOf(t, demand, limit)
		with := func(count int64) Outcome {
			pods := *demand.Pods
			pods.Wanted = count
			demand.Pods = &pods
			return verdictOn(t, []Demand{demand}, []Limit{limit}).Outcome()
		}
		if room.Fit > demand.Pods.Present && with(room.Fit) != Fits {
			t.Fatalf("%d pods don't fit", room.Fit)
		}
		if room.Fit < room.Wanted && with(room.Fit+1) == Fits {
			t.Fatalf("one more than %d pods fit", room.Fit)
		}
	})
}
